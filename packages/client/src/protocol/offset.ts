/** Offsets are in base 36 [P-8.1]: every message carries one, and it is a third shorter than in decimal. */
const RADIX = 36
// Pure: the client library never writes an offset, so its bundle goes without.
const DIGITS = /* @__PURE__ */ Uint8Array.from('0123456789abcdefghijklmnopqrstuvwxyz', (char) => char.charCodeAt(0))
/** Up to this value a digit needs integer arithmetic only, which is much cheaper. */
const MAX_INT = 0x7fff_ffff

/** Formats an offset. */
export function formatOffset(offset: number): string {
  return offset.toString(RADIX)
}

/** Parses an offset; `undefined` if the text is not one [P-8.1]. */
export function parseOffset(text: string): number | undefined {
  const offset = Number.parseInt(text, RADIX)
  return /^(?:0|[1-9a-z][0-9a-z]{0,10})$/.test(text) && Number.isSafeInteger(offset) ? offset : undefined
}

/** Number of characters of an offset. */
export function digitCountOf(offset: number): number {
  let count = 1
  for (let bound = RADIX; offset >= bound; bound *= RADIX) count++
  return count
}

/** Writes an offset into `target` from `start` on; returns where it ends. */
export function putOffset(target: Uint8Array, start: number, offset: number): number {
  const end = start + digitCountOf(offset)
  let place = end
  let rest = offset
  while (rest > MAX_INT) {
    const next = Math.floor(rest / RADIX)
    target[--place] = DIGITS[rest - next * RADIX] ?? 0
    rest = next
  }
  while (place > start) {
    const next = (rest / RADIX) | 0
    target[--place] = DIGITS[rest - next * RADIX] ?? 0
    rest = next
  }
  return end
}
