import type { LinkSource } from '../remote/link.js'

/**
 * How far a node has read the log, across all its links. It also keeps an anchor: a unique record at a known offset, to
 * detect that the log was replaced.
 */
export class LogCursor {
  /** Epoch of the followed log; empty before that. */
  epoch = ''
  /** Offset in the queue of the last record that was read; -1 before that. */
  seenOffset = -1
  /** Time of the last record that told one. */
  timeMs = 0
  #anchor: Anchor | undefined

  /** Offset of the anchor; `undefined` without one. */
  get anchorOffset(): number | undefined {
    return this.#anchor?.offset
  }

  /** Begins anew: in another log, or at another offset. */
  begin(epoch: string, nextOffset: number): void {
    this.epoch = epoch
    this.seenOffset = nextOffset - 1
    this.forget()
  }

  /** Drops the anchor: it is no longer known whether the log is the same. */
  forget(): void {
    this.#anchor = undefined
  }

  /** Another program's message stands there. It is no anchor: others may look like it. */
  saw(offset: number): void {
    this.seenOffset = offset
  }

  sawMessage(offset: number, source: LinkSource): void {
    this.seenOffset = offset
    this.#anchor = { offset, source, nonce: undefined }
  }

  sawEpochRecord(offset: number, nonce: string): void {
    this.seenOffset = offset
    this.#anchor = { offset, source: undefined, nonce }
  }

  /** Whether this is what was seen at the offset of the anchor. */
  isAnchor(source: LinkSource | undefined, nonce: string | undefined): boolean {
    if (this.#anchor === undefined) return false
    const known = this.#anchor.source
    if (known === undefined) return nonce === this.#anchor.nonce
    return source?.node === known.node && source.sequence === known.sequence
  }
}

/** A unique record: a node's message, or an epoch record. */
interface Anchor {
  readonly offset: number
  readonly source: LinkSource | undefined
  readonly nonce: string | undefined
}
