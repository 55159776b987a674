import type { LinkSource } from '../remote/link.js'

/**
 * Where a node is in the log, over all its links: and something of which there is but one, at an offset that it has seen, by which it finds out whether
 * the log is still the same.
 */
export class LogBookmark {
  /** Of the log that is followed; empty before that. */
  epoch = ''
  /** Offset in the queue of the last that was read; -1 before that. */
  seenOffset = -1
  #anchorOffset = -1
  #anchorSource: LinkSource | undefined
  #anchorNonce: string | undefined

  /** Offset of what is known; `undefined` when nothing is. */
  get anchorOffset(): number | undefined {
    return this.#anchorOffset < 0 ? undefined : this.#anchorOffset
  }

  /** Begins anew: what follows is of another log, or begins at another place. */
  begin(epoch: string, nextOffset: number): void {
    this.epoch = epoch
    this.seenOffset = nextOffset - 1
    this.forget()
  }

  /** It is no longer known whether the log is the same. */
  forget(): void {
    this.#anchorOffset = -1
    this.#anchorSource = undefined
    this.#anchorNonce = undefined
  }

  /** A message of somebody else stands there: others may look like it. */
  saw(offset: number): void {
    this.seenOffset = offset
  }

  sawMessage(offset: number, source: LinkSource): void {
    this.seenOffset = offset
    this.#anchorOffset = offset
    this.#anchorSource = source
  }

  sawMark(offset: number, nonce: string): void {
    this.seenOffset = offset
    this.#anchorOffset = offset
    this.#anchorSource = undefined
    this.#anchorNonce = nonce
  }

  /** Whether what stands at the anchor's offset is what was seen there. */
  isAnchor(source: LinkSource | undefined, nonce: string | undefined): boolean {
    const known = this.#anchorSource
    if (known === undefined) return nonce !== undefined && nonce === this.#anchorNonce
    return source !== undefined && source.node === known.node && source.sequence === known.sequence
  }
}
