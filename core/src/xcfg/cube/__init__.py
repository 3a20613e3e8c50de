"""The result cube: one dimension an axis, a projection of the sealed attempts (writer, reader, query)."""
