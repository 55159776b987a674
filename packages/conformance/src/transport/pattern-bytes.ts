/** Bytes without short repetitions, so that a lost or swapped piece shows. */
export function patternBytes(count: number): Buffer {
  const bytes = Buffer.allocUnsafe(count)
  for (let index = 0; index < count; index++) bytes[index] = (index * index) >> 8
  return bytes
}
