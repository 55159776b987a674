/** Most records of a {@link FingerprintRing}: 768 KiB. */
export const MAX_RING_RECORDS = 65_536
/** Room at first; it doubles. */
const FIRST_RECORDS = 64

/** Fingerprints of the newest records, by their offsets. The oldest are forgotten first. */
export class FingerprintRing {
  #offsets = new Float64Array(FIRST_RECORDS)
  #fingerprints = new Uint32Array(FIRST_RECORDS)
  /** Number of records ever added. */
  #end = 0

  /** @param offset Greater than any before. */
  add(offset: number, fingerprint: number): void {
    const { length } = this.#offsets
    if (this.#end === length && length < MAX_RING_RECORDS) this.#grow()
    const at = this.#end % this.#offsets.length
    this.#offsets[at] = offset
    this.#fingerprints[at] = fingerprint
    this.#end++
  }

  /** Offset of the newest record at or before this offset; -1 when none is known. */
  offsetAt(offset: number): number {
    const index = this.#indexAt(offset)
    return index < 0 ? -1 : (this.#offsets[index] ?? -1)
  }

  /** Its fingerprint; 0 when none is known. */
  fingerprintAt(offset: number): number {
    const index = this.#indexAt(offset)
    return index < 0 ? 0 : (this.#fingerprints[index] ?? 0)
  }

  #indexAt(offset: number): number {
    const { length } = this.#offsets
    let low = Math.max(0, this.#end - length)
    const first = low
    let high = this.#end
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if ((this.#offsets[middle % length] ?? 0) > offset) high = middle
      else low = middle + 1
    }
    return low === first ? -1 : (low - 1) % length
  }

  #grow(): void {
    const offsets = new Float64Array(this.#offsets.length * 2)
    const fingerprints = new Uint32Array(offsets.length)
    offsets.set(this.#offsets)
    fingerprints.set(this.#fingerprints)
    this.#offsets = offsets
    this.#fingerprints = fingerprints
  }
}
