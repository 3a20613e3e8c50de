"use strict";
/* Each chart: its options for ECharts, and the rows of the table beside it. */
const ROWS = 200;

/* Bars stand on 0; points fill the chart. */
function axis(name, scale) {
  return { type: "value", name, nameLocation: "middle", nameGap: 28, scale, ...lines(), splitLine: { lineStyle: { color: colour("line") } } };
}

function lines() {
  return { axisLine: { onZero: false, lineStyle: { color: colour("dim") } }, axisLabel: { color: colour("ink") } };
}

function frame(x, y, series, more) {
  const points = series[0].type === "scatter";
  return {
    animation: false, aria: { enabled: true }, backgroundColor: "transparent", textStyle: { color: colour("ink") },
    grid: { left: 64, right: 24, top: 24, bottom: 48 }, tooltip: {}, xAxis: axis(x, true), yAxis: { ...axis(y, points), nameGap: 44 }, series, ...more,
  };
}

function scatter(points) {
  return [{ type: "scatter", data: points, symbolSize: 4, itemStyle: { color: colour("accent"), opacity: 0.6 }, large: true }];
}

function charts(held, ranks) {
  const position = unpacked(held.position), rollout = unpacked(held.rollout), drift = unpacked(held.drift);
  const training = rollout.map((value, index) => value + drift[index]);
  const middles = held.counts.map((_, index) => (held.edges[index] + held.edges[index + 1]) / 2);
  const bars = [{ type: "bar", data: pairs(middles, held.counts), itemStyle: { color: colour("accent") }, barWidth: "95%" }];
  const found = [
    ["d along the response", frame("position", "d", scatter(pairs(position, drift))), ["position", "d"], pairs(position, drift)],
    ["d against the rollout logprob", frame("rollout logprob", "d", scatter(pairs(rollout, drift))), ["rollout logprob", "d"],
      pairs(rollout, drift)],
    ["How often each d occurs", frame("d", "tokens", bars), ["d (middle of the bin)", "tokens"], pairs(middles, held.counts)],
    ["Rollout against training", frame("rollout logprob", "training logprob", scatter(pairs(rollout, training))),
      ["rollout logprob", "training logprob"], pairs(rollout, training)],
  ];
  if (ranks.length) {
    const names = ranks.map((row) => `${row[0]} / ${row[1]}`);
    const largest = [{ type: "bar", data: ranks.map((row) => Number(row[3])), itemStyle: { color: colour("accent") } }];
    found.push(["max |d| of each pair of ranks", frame("rollout rank / training rank", "max |d|", largest,
      { xAxis: { ...lines(), type: "category", data: names, name: "rollout rank / training rank", nameLocation: "middle", nameGap: 28 } }),
      ["rollout rank", "training rank", "tokens", "max |d|", "mean |d|"], ranks]);
  }
  return found;
}

function heat(across, down, cells, reach) {
  const category = (axis) => ({ ...lines(), type: "category", data: axis.values, name: axis.name, nameLocation: "middle", nameGap: 32 });
  return {
    animation: false, aria: { enabled: true }, backgroundColor: "transparent", textStyle: { color: colour("ink") },
    grid: { left: 120, right: 24, top: 16, bottom: 96 }, tooltip: {},
    xAxis: category(across), yAxis: { ...category(down), nameGap: 96 },
    visualMap: { dimension: 2, min: reach[0], max: reach[1] > reach[0] ? reach[1] : 1, text: [short(reach[1]), short(reach[0])], calculable: false, orient: "horizontal", left: "center", bottom: 0,
      textStyle: { color: colour("ink") }, inRange: { color: ["#dceafd", "#7fb0ee", "#1f5fbf", "#0b2d66"] } },
    series: [{ type: "heatmap", data: cells, label: { show: true, formatter: (cell) => short(cell.value[2]) },
      itemStyle: { borderColor: colour("paper"), borderWidth: 1 } }],
  };
}
