import type { ConnectionId, OutboxLevel, Transport } from '../ports/transport.js'

interface Wait {
  readonly level: OutboxLevel
  readonly drained: () => void
}

/** Lets several parts wait for the outbox of one connection: a transport answers one question at a time. */
export class Drains {
  readonly #transport: Pick<Transport, 'notifyDrained'>
  /** The first wait of each connection has been asked. */
  readonly #waits = new Map<ConnectionId, Wait[]>()

  constructor(transport: Pick<Transport, 'notifyDrained'>) {
    this.#transport = transport
  }

  /** Calls `drained` once, as {@link Transport.notifyDrained} says; never for a connection that closes before. */
  await(connection: ConnectionId, level: OutboxLevel, drained: () => void): void {
    const waits = this.#waits.get(connection)
    if (waits !== undefined) {
      waits.push({ level, drained })
      return
    }
    this.#waits.set(connection, [{ level, drained }])
    this.#transport.notifyDrained(connection, level)
  }

  drained(connection: ConnectionId): void {
    const waits = this.#waits.get(connection)
    const first = waits?.shift()
    const [next] = waits ?? []
    if (next === undefined) this.#waits.delete(connection)
    else this.#transport.notifyDrained(connection, next.level)
    first?.drained()
  }

  release(connection: ConnectionId): void {
    this.#waits.delete(connection)
  }
}
