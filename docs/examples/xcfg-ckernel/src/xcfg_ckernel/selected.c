#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* logprobs[i] = log_softmax(logits[i])[targets[i]] in nats, all in float, summed in the order of the vocabulary. */
void selected_logprob(const float *logits, const int64_t *targets, size_t rows, size_t columns, float *logprobs)
{
    for (size_t row = 0; row < rows; row++) {
        const float *x = logits + row * columns;
        float largest = x[0];
        float sum = 0.0f;
        for (size_t column = 1; column < columns; column++)
            largest = x[column] > largest ? x[column] : largest;
        for (size_t column = 0; column < columns; column++)
            sum += expf(x[column] - largest);
        logprobs[row] = x[targets[row]] - largest - logf(sum);
    }
}
