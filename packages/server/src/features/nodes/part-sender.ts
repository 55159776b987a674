import type { Nodes } from './nodes.js'

export interface PartSource {
  readonly name: string
  /** Ids of the entries; a live view that may change during the walk. */
  readonly ids: () => Iterable<string>
  /** JSON of an entry; `undefined` when it is gone. */
  readonly textOf: (id: string) => string | undefined
  readonly version: () => number
}

const ENVELOPE_BYTES = 256

/**
 * Sends full copies of a table, one part at a time, so that a node with very many entries does not fill the broker's
 * queues. It needs no snapshot: a change that went out while a part was being published precedes the next part.
 */
export class PartSender {
  readonly #source: PartSource
  readonly #nodes: Nodes
  readonly #maxMessageBytes: number
  /** Nodes that asked for a full copy, with the number of their request. */
  readonly #askers = new Map<string, number>()
  readonly #served = new Set<string>()

  constructor(source: PartSource, nodes: Nodes, maxMessageBytes: number) {
    this.#source = source
    this.#nodes = nodes
    this.#maxMessageBytes = maxMessageBytes
  }

  /** Sends a node a full copy, later; a newer request ends an older one. */
  serve(node: string, round: number): void {
    this.#askers.set(node, round)
    if (this.#served.has(node)) return
    this.#served.add(node)
    setImmediate(() => void this.#serve(node))
  }

  stop(): void {
    this.#askers.clear()
  }

  async #serve(asker: string): Promise<void> {
    try {
      for (let round = this.#askers.get(asker); round !== undefined; round = this.#askers.get(asker)) {
        await this.#sendAll(asker, round)
        if (this.#askers.get(asker) === round) this.#askers.delete(asker)
      }
    } catch (error) {
      // The node asks again when nothing comes.
      this.#askers.delete(asker)
      this.#nodes.report(error, this.#source.name)
    } finally {
      this.#served.delete(asker)
    }
  }

  async #sendAll(asker: string, round: number): Promise<void> {
    const { name, ids, textOf, version } = this.#source
    let index = 0
    let entries: string[] = []
    let byteCount = ENVELOPE_BYTES
    const send = async (isLast: boolean) => {
      const head = `"round":${round},"index":${index++},"version":${version()},"isLast":${isLast}`
      const fields = `{${head},"entries":[${entries.join()}]}`
      entries = []
      byteCount = ENVELOPE_BYTES
      await this.#nodes.channel.send(name, 'part', fields, asker)
      return this.#askers.get(asker) === round
    }
    for (const id of ids()) {
      let text = textOf(id)
      if (text !== undefined && byteCount + Buffer.byteLength(text) + 1 > this.#maxMessageBytes) {
        if (!(await send(false))) return
        text = textOf(id)
      }
      if (text === undefined) continue
      entries.push(text)
      byteCount += Buffer.byteLength(text) + 1
    }
    await send(true)
  }
}
