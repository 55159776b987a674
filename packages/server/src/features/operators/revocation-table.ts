import { type Revocation, type Revocations, revocationFrom, revocationText } from '../../kernel/identity/revocations.js'
import { isCount, listOf, type NodeMessage, type Nodes, type NodeTable, PartSender } from '../nodes/index.js'

/** A node that sends no part for this long is left, and the next one is asked. */
const SILENCE_MS = 5_000
const MAX_ITEMS = 65_536
/** More than two numbers of a digest take. */
const MAX_MARK_CHARS = 32

/**
 * Revocations as a table that belongs to no node: what one node holds, all hold, also when the node that took it is gone.
 * A node tells the digest of what it holds. Where that differs, both ask each other: the union is what counts. One node is
 * asked at a time, because the others usually hold the same.
 */
export class RevocationTable implements NodeTable {
  readonly name = 'revocations'
  readonly #nodes: Nodes
  readonly #revocations: Revocations
  readonly #take: (revocations: readonly Revocation[]) => void
  readonly #parts: PartSender
  /** Nodes that hold something else, as they told it. */
  readonly #sources = new Map<string, string>()
  #source: string | undefined
  #round = 0
  #timer: NodeJS.Timeout | undefined

  /** @param maxMessageBytes Bytes of one message to other nodes. @param take Gets the revocations of another node. */
  constructor(
    nodes: Nodes,
    revocations: Revocations,
    maxMessageBytes: number,
    take: (revocations: readonly Revocation[]) => void,
  ) {
    this.#nodes = nodes
    this.#revocations = revocations
    this.#take = take
    const source = {
      name: this.name,
      ids: () => Array.from(revocations, (revocation) => JSON.stringify(revocationText(revocation))),
      textOf: (text: string) => text,
      version: () => 0,
    }
    this.#parts = new PartSender(source, nodes, maxMessageBytes)
    nodes.add(this)
  }

  get mark(): string {
    return markOf(this.#revocations)
  }

  get isComplete(): boolean {
    return this.#source === undefined
  }

  /** Tells the other nodes of a revocation. Resolves once the broker has accepted it. */
  async tell(revocation: Revocation): Promise<void> {
    const fields = `{"entries":[${JSON.stringify(revocationText(revocation))}]}`
    await this.#nodes.channel.send(this.name, 'changes', fields)
  }

  compare(node: string, mark: unknown, isGreeting: boolean): void {
    // At other times, what one node has removed because it is over may still be with the other.
    if (!isGreeting || typeof mark !== 'string' || mark.length > MAX_MARK_CHARS) return
    if (mark === NOTHING || mark === this.mark) return
    this.#sources.set(node, mark)
    if (this.#source === undefined) this.#askNext()
  }

  receive({ node, kind, fields }: NodeMessage): boolean {
    const { round, isLast } = fields
    if (kind === 'want') {
      if (isCount(round)) this.#parts.serve(node, round)
      return isCount(round)
    }
    const revocations = listOf(fields.entries, MAX_ITEMS, revocationFrom)
    if (revocations === undefined || (kind !== 'changes' && kind !== 'part')) return false
    this.#take(revocations)
    if (kind === 'part' && node === this.#source) {
      if (isLast === true) this.#askNext()
      else this.#waitForPart()
    }
    return true
  }

  left(node: string): void {
    this.#sources.delete(node)
  }

  restart(): void {
    this.#askNext()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#sources.clear()
    this.#parts.stop()
  }

  #askNext(): void {
    clearTimeout(this.#timer)
    this.#source = undefined
    const own = this.mark
    for (const [node, mark] of this.#sources) {
      this.#sources.delete(node)
      if (mark === own) continue
      this.#source = node
      this.#nodes.channel.tell(this.name, 'want', { round: ++this.#round }, node)
      this.#waitForPart()
      return
    }
  }

  #waitForPart(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#askNext(), SILENCE_MS).unref()
  }
}

const NOTHING = '0 0'

function markOf(revocations: Revocations): string {
  const { count, hash } = revocations.digest()
  return `${count} ${hash}`
}
