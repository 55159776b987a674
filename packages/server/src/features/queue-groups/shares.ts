/** Part of a number that clients may use; the rest is left to the process itself. */
const CLIENTS_PART = 7 / 8
/** Part of it that one client may use. */
const CLIENT_PART = 1 / 16

/**
 * Counts what clients have of something that all of a node share, so that none of them can have all of it. A client is a
 * user, or an address of anonymous clients; the process itself has no name.
 */
export class Shares {
  readonly #max: number
  readonly #byClient = new Map<string, number>()
  readonly maxOfClient: number

  /** @param max Most of all. */
  constructor(max: number) {
    this.#max = max
    this.maxOfClient = Math.floor(max * CLIENT_PART)
  }

  countOf(client: string): number {
    return this.#byClient.get(client) ?? 0
  }

  /** @param size What all have now. */
  hasRoom(client: string | undefined, size: number): boolean {
    if (client === undefined) return size < this.#max
    return size < this.#max * CLIENTS_PART && this.countOf(client) < this.maxOfClient
  }

  add(client: string | undefined): void {
    if (client !== undefined) this.#byClient.set(client, this.countOf(client) + 1)
  }

  remove(client: string | undefined): void {
    if (client === undefined) return
    const count = this.countOf(client) - 1
    if (count > 0) this.#byClient.set(client, count)
    else this.#byClient.delete(client)
  }
}
