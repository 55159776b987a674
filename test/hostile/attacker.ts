import { setTimeout as sleep } from 'node:timers/promises'
import { Budget, type BudgetLimits } from './budget.js'
import { type FrameShape, frameOf } from './frames.js'
import { type OpenOptions, RawConnection } from './raw-connection.js'
import { RawSocket, SocketEnded } from './raw-socket.js'
import type { Tally } from './tally.js'

/** A handshake costs as much of the budget as this many messages. */
const OPERATIONS_PER_CONNECT = 10
/** Pause before a client that was closed or refused comes back. */
const RETURN_MS = 50
const STATUS_LINE = /HTTP\/1\.1 (\d{3})/g

/** Time to read the close frame of a connection that was never read. */
const LAST_READ_MS = 300

/** A connection of either kind. */
interface Ending {
  readonly ended: Promise<void>
  resume(): void
  destroy(): void
}

/** What all hostile clients of a case share. */
export interface AttackSettings {
  readonly port: number
  readonly limits: BudgetLimits
  /** Secret with which the server checks tokens; only cases about tokens have one. */
  readonly jwtSecret?: string
  /** Aborted when the attack is over. */
  readonly signal: AbortSignal
  readonly tally: Tally
}

/** One attacker: everything it sends is paced by its budget and ends with the attack. */
export class Attacker {
  /** From 0. */
  readonly index: number
  readonly port: number
  readonly jwtSecret: string
  readonly #settings: AttackSettings
  readonly #budget: Budget
  readonly #open = new Set<Ending>()

  constructor(index: number, settings: AttackSettings) {
    this.index = index
    this.port = settings.port
    this.jwtSecret = settings.jwtSecret ?? ''
    this.#settings = settings
    this.#budget = new Budget(settings.limits, settings.signal)
  }

  get isOver(): boolean {
    return this.#settings.signal.aborted
  }

  get tally(): Tally {
    return this.#settings.tally
  }

  /** Opens a WebSocket connection. @throws {SocketEnded} when the server refuses. */
  async open(options: OpenOptions = {}): Promise<RawConnection> {
    await this.#spend(0, OPERATIONS_PER_CONNECT)
    return this.#keep(await RawConnection.open(this.port, this.tally, options))
  }

  /** Opens a TCP connection. @throws {SocketEnded} when the server refuses. */
  async openSocket(): Promise<RawSocket> {
    await this.#spend(0, OPERATIONS_PER_CONNECT)
    const socket = await RawSocket.open(this.port, this.tally)
    socket.onData = (chunk) => {
      for (const [, status = ''] of chunk.toString('latin1').matchAll(STATUS_LINE)) this.tally.status(status)
    }
    void socket.ended.then(() => {
      if (socket.wasEndedByServer) this.tally.close(socket.reason)
    })
    return this.#keep(socket)
  }

  /** Sends a message when the budget allows it. @throws {SocketEnded} when the connection has ended. */
  async send(connection: RawConnection, message: string | Buffer): Promise<void> {
    await this.#spend(message.length)
    await connection.send(message)
  }

  /** Sends a frame of any shape when the budget allows it. @throws {SocketEnded} when the connection has ended. */
  async sendFrame(connection: RawConnection, payload: string | Buffer, shape: FrameShape): Promise<void> {
    const frame = frameOf(payload, shape)
    await this.#spend(frame.length)
    await connection.sendBytes(frame)
  }

  /** Sends any bytes when the budget allows it. @throws {SocketEnded} when the connection has ended. */
  async write(socket: RawSocket, text: string | Buffer): Promise<void> {
    await this.#spend(text.length)
    await socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text)
  }

  /** @throws the reason of the signal when the attack is over. */
  async sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#settings.signal })
  }

  /** Does something again and again until the attack is over; comes back whenever the server ends the connection. */
  async repeat(act: () => Promise<void>): Promise<void> {
    while (!this.isOver) {
      try {
        await act()
      } catch (error) {
        if (!(error instanceof SocketEnded)) throw error
        await this.sleep(RETURN_MS)
      }
    }
  }

  /** Holds several connections at once; each is made again when it ends. */
  async hold(count: number, act: (place: number) => Promise<void>): Promise<void> {
    await Promise.all(
      Array.from({ length: count }, async (_, place) => await this.repeat(async () => await act(place))),
    )
  }

  /** Reads the last answers of unread connections, ends all connections, and resolves when their bytes are counted. */
  async end(): Promise<void> {
    for (const one of this.#open) one.resume()
    await sleep(this.#open.size > 0 ? LAST_READ_MS : 0)
    for (const one of this.#open) one.destroy()
    await Promise.all([...this.#open].map(({ ended }) => ended))
  }

  async #spend(bytes: number, operations = 1): Promise<void> {
    await this.#budget.spend(bytes, operations)
    this.tally.operationCount++
  }

  #keep<Kind extends Ending>(one: Kind): Kind {
    this.#open.add(one)
    if (this.isOver) one.destroy()
    void one.ended.then(() => this.#open.delete(one))
    return one
  }
}
