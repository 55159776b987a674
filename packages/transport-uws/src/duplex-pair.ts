import { Duplex, type DuplexOptions } from 'node:stream'

/** Socket fields that an `http` server and its frameworks read. */
export interface PeerAddress {
  readonly remoteAddress: string
  readonly remotePort: number
  /** Set under TLS; frameworks derive `https` from it. */
  readonly encrypted: boolean
}

/**
 * One end of an in-process connection. Data written to it can be read from the other end, with backpressure.
 * It has the methods of `net.Socket` that `http` calls; they do nothing here.
 */
class InProcessSocket extends Duplex implements PeerAddress {
  readonly remoteAddress: string
  readonly remotePort: number
  readonly encrypted: boolean
  #other: InProcessSocket | undefined
  /** Resumes the writer after a read. */
  #resumeWriter: (() => void) | undefined

  constructor(peer: PeerAddress, options?: DuplexOptions) {
    super(options)
    this.remoteAddress = peer.remoteAddress
    this.remotePort = peer.remotePort
    this.encrypted = peer.encrypted
  }

  connect(other: InProcessSocket): void {
    this.#other = other
  }

  setTimeout(): this {
    return this
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  override _read(): void {
    const resume = this.#resumeWriter
    this.#resumeWriter = undefined
    resume?.()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#other?.receive(chunk, done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#other?.receive(null, done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const other = this.#other
    this.#other = undefined
    // Deferred, because the other end's handlers must not run inside this end's `destroy`.
    if (other !== undefined) setImmediate(() => other.destroy())
    done(error)
  }

  receive(chunk: Buffer | null, done: () => void): void {
    if (this.destroyed || this.push(chunk) || chunk === null) done()
    else this.#resumeWriter = done
  }
}

/** Creates both ends of an in-process connection. The second one reports `peer` as its remote address. */
export function createDuplexPair(peer: PeerAddress): [near: Duplex, far: Duplex] {
  const near = new InProcessSocket(peer)
  const far = new InProcessSocket(peer)
  near.connect(far)
  far.connect(near)
  return [near, far]
}
