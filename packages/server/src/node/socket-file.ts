import { once } from 'node:events'
import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import { connect } from 'node:net'
import { WebMQError } from 'webmq-client/protocol'
import { codeOf } from '../base/reason.js'
import { unixPathOf } from '../ports/unix-socket.js'

/** The file of the Unix socket that a transport listens on, from before it binds until it has stopped. */
export class SocketFile {
  readonly #path: string
  #bound: string | undefined

  private constructor(path: string) {
    this.#path = path
  }

  /** `undefined`: the host is an address. */
  static of(host: string): SocketFile | undefined {
    const path = unixPathOf(host)
    return path === undefined ? undefined : new SocketFile(path)
  }

  /**
   * Removes what a server that crashed has left: a socket on which nobody listens.
   * @throws {WebMQError} `E_ADDRESS_IN_USE`; `E_ADDRESS_UNAVAILABLE`: the file is no socket, or may not be removed.
   */
  async clear(): Promise<void> {
    const path = this.#path
    try {
      const found = lstatSync(path, { throwIfNoEntry: false })
      if (found === undefined) return
      if (!found.isSocket()) throw new Error('the file is no socket')
      if (await isListening(path)) throw new WebMQError('E_ADDRESS_IN_USE', { detail: path })
      unlinkSync(path)
    } catch (cause) {
      if (cause instanceof WebMQError) throw cause
      throw new WebMQError('E_ADDRESS_UNAVAILABLE', { detail: `${path}: ${codeOf(cause)}`, cause })
    }
  }

  /** The transport has bound it. @param mode Octal digits, as `660`. */
  bound(mode: string): void {
    chmodSync(this.#path, Number.parseInt(mode, 8))
    this.#bound = identityOf(this.#path)
  }

  /** Removes the file, unless another server has put its own in its place. */
  remove(): void {
    if (this.#bound !== undefined && identityOf(this.#path) === this.#bound) unlinkSync(this.#path)
  }
}

async function isListening(path: string): Promise<boolean> {
  const socket = connect(path)
  try {
    await once(socket, 'connect')
    return true
  } catch (error) {
    if (codeOf(error) === 'ECONNREFUSED') return false
    throw error
  } finally {
    socket.destroy()
  }
}

/** A new socket may get the inode of one that was removed, but not its time. */
function identityOf(path: string): string | undefined {
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  return found && `${found.ino} ${found.mtimeNs}`
}
