import type { LinkSource } from 'webmq-server/brokers'

/**
 * How far a node has read the log, across all its links. It also keeps an anchor: a unique record at a known offset, to
 * detect that the log was replaced.
 */
export class LogCursor {
  /** Epoch of the followed log; empty before that. */
  epoch = ''
  /** Offset in the queue of the last record that was read; -1 before that. */
  seenOffset = -1
  /** The node knows that the log was whole when it began to read. Without that, it may not set the mark after a restart. */
  isConfirmed = false
  /** Time of the last record that told one. */
  timeMs = 0
  /** Offset of the anchor; `undefined` without one. */
  anchorOffset: number | undefined
  /** A record that is unlike all others: a message of a node, or the nonce of an epoch record. */
  #anchor: LinkSource | string | undefined

  /** Begins anew: in another log, or at another offset. */
  begin(epoch: string, nextOffset: number): void {
    this.epoch = epoch
    this.seenOffset = nextOffset - 1
    this.forget()
  }

  /** Drops the anchor: it is no longer known whether the log is the same. */
  forget(): void {
    this.anchorOffset = undefined
  }

  /** @param anchor Absent for a message of another program: others may look like it. */
  saw(offset: number, anchor?: LinkSource | string): void {
    this.seenOffset = offset
    if (anchor === undefined) return
    this.anchorOffset = offset
    this.#anchor = anchor
  }

  /** Whether this is what was seen at the offset of the anchor. */
  isAnchor(source: LinkSource | undefined, nonce: string | undefined): boolean {
    const known = this.#anchor
    if (typeof known === 'string') return nonce === known
    return known !== undefined && source?.node === known.node && source.sequence === known.sequence
  }
}
