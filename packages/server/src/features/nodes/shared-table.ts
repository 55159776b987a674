import { deferred } from '../../kernel/base/deferred.js'
import { isCount, listOf, type NodeMessage } from './node-message.js'
import type { NodeTable } from './node-table.js'
import type { Nodes } from './nodes.js'
import { PartSender } from './part-sender.js'
import { TableCopy } from './table-copy.js'
import type { TableChange, TableEntries } from './table-entries.js'

export interface SharedTableOptions {
  /** Topic of its messages: lower-case letters. */
  readonly name: string
  /** Bytes of one message to other nodes; only a single large entry may exceed it. */
  readonly maxMessageBytes: number
  /** Changes within this time go out together; 0: those of one turn of the event loop. */
  readonly batchMs: number
  /** Other nodes confirm what they know, for {@link SharedTable.whenKnown}. */
  readonly isConfirmed: boolean
}

/** Most pending changes. Beyond it they are dropped, and the other nodes ask for a full copy. */
const MAX_PENDING = 10_000
/** Most entries and removals of a message. */
const MAX_ITEMS = 65_536
const ENVELOPE_BYTES = 256

/**
 * A table of which each node owns some entries and holds a copy of the others'. Changes go to all nodes with a version; a
 * node that has missed one asks for a full copy.
 */
export class SharedTable<Change extends TableChange> implements NodeTable {
  readonly name: string
  readonly #options: SharedTableOptions
  readonly entries: TableEntries<Change>
  readonly #nodes: Nodes
  readonly #parts: PartSender
  readonly #copies = new Map<string, TableCopy<Change>>()
  /** Nodes that did not answer, and were not heard since. */
  readonly #silent = new Set<string>()
  /** Nodes that have not said what they have since messages were lost. */
  readonly #unheard = new Set<string>()
  /** Own entries that changed, with the note of the last change. */
  readonly #pending = new Map<string, number>()
  #isScheduled = false
  #timer: NodeJS.Timeout | undefined
  #flushed = deferred<number>()
  mark = 0

  constructor(nodes: Nodes, entries: TableEntries<Change>, options: SharedTableOptions) {
    this.name = options.name
    this.#options = options
    this.entries = entries
    this.#nodes = nodes
    const source = {
      name: options.name,
      ids: () => entries.ids(),
      textOf: (id: string) => entries.entryText(id),
      version: () => this.mark,
    }
    this.#parts = new PartSender(source, nodes, options.maxMessageBytes)
    nodes.add(this)
  }

  /** Begins to take part: idempotent. Resolves once changes of other nodes arrive. */
  async open(): Promise<void> {
    await this.#nodes.openTable(this)
  }

  get isComplete(): boolean {
    return this.#nodes.peers().every((node) => {
      const copy = this.#copies.get(node)
      return copy?.hasReported === true && copy.isComplete
    })
  }

  /** Whether nothing is missing of what was lost while this node was cut off. */
  get isCurrent(): boolean {
    return this.#nodes.isUp && this.#unheard.size === 0 && this.isComplete
  }

  /** Resolves when it is current, at the latest after `waitMs` of the nodes. */
  whenCurrent(): Promise<void> {
    return this.#nodes.until(() => this.isCurrent)
  }

  /** The other nodes that take part and have said what they have. */
  members(): string[] {
    return this.#nodes.peers().filter((node) => {
      const copy = this.#copies.get(node)
      return copy?.hasReported === true && copy.takesPart
    })
  }

  /** An own entry is new, has changed or is gone. @param note For {@link TableEntries.removalText}. */
  changed(id: string, note = 0): void {
    this.#pending.set(id, note)
    if (this.#pending.size > MAX_PENDING) {
      this.#pending.clear()
      // Skips a version: the next lease shows the other nodes that they have missed changes.
      this.mark++
      this.#nodes.lease()
    }
    this.#schedule()
  }

  /**
   * Resolves when the other nodes know of all changes until now, at the latest after `waitMs` of the nodes.
   * @param options `mayDistrust` (the default): a node that does not answer is silent, see {@link isSilent}.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE`
   */
  async whenKnown({ mayDistrust = true }: { readonly mayDistrust?: boolean } = {}): Promise<void> {
    if (!this.#isScheduled) return
    const version = await this.#flushed.promise
    const isBehind = (node: string) => {
      const { knownVersion = 0, takesPart = true } = this.#copies.get(node) ?? {}
      return takesPart && knownVersion < version && !this.#silent.has(node)
    }
    await this.#nodes.until(() => !this.#nodes.peers().some(isBehind))
    // One that is gone must not make everybody wait.
    if (mayDistrust && this.#nodes.isUp) for (const node of this.#nodes.peers().filter(isBehind)) this.distrust(node)
  }

  /** A node does not answer: nobody waits for it until its next message. Its entries stay until it is gone. */
  distrust(node: string): void {
    this.#silent.add(node)
  }

  isSilent(node: string): boolean {
    return this.#silent.has(node)
  }

  get silentCount(): number {
    return this.#silent.size
  }

  /** A message of the node has come. */
  heard(node: string): void {
    if (this.#silent.size > 0 && this.#silent.delete(node)) this.entries.heard?.(node)
  }

  compare(node: string, mark: unknown): void {
    const copy = this.#copyOf(node)
    const isMember = isCount(mark)
    this.#unheard.delete(node)
    const isChanged = !copy.hasReported || copy.takesPart !== isMember
    copy.hasReported = true
    copy.takesPart = isMember
    if (isMember) copy.compare(mark)
    if (isChanged) this.entries.membersChanged?.()
  }

  receive({ node, kind, fields }: NodeMessage): boolean {
    const { version, round, index } = fields
    if (kind === 'want') {
      if (!isCount(round)) return false
      this.#parts.serve(node, round)
      return true
    }
    if (!isCount(version)) return false
    const copy = this.#copyOf(node)
    if (kind === 'known') {
      copy.knownVersion = Math.max(copy.knownVersion, version)
      return true
    }
    const changes = listOf(fields.entries, MAX_ITEMS, (item) => this.entries.decode(item, node))
    if (changes === undefined) return false
    if (kind === 'changes') copy.changes(version, changes)
    else if (kind !== 'part' || !isCount(round) || !isCount(index)) return false
    else {
      // The entries may belong to a node that this one took for gone.
      copy.hasReported = true
      copy.part({ round, index, version, isLast: fields.isLast === true }, changes)
      if (copy.isComplete) this.entries.copied?.(node)
    }
    return true
  }

  left(node: string, hasLeft: boolean): void {
    this.#silent.delete(node)
    this.#unheard.delete(node)
    this.#copies.delete(node)
    this.entries.removeNode(node, hasLeft)
  }

  retry(): void {
    for (const copy of this.#copies.values()) copy.retry()
  }

  restart(): void {
    this.entries.messagesLost?.()
    for (const node of this.#nodes.peers()) this.#unheard.add(node)
    for (const copy of this.#copies.values()) copy.restart()
    if (this.#pending.size > 0) this.#schedule()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#nodes.isUp) this.#flush()
    this.#parts.stop()
    this.#flushed.resolve(this.mark)
  }

  #schedule(): void {
    if (this.#isScheduled || !this.#nodes.isOpen(this)) return
    this.#isScheduled = true
    const { batchMs } = this.#options
    const flush = () => {
      this.#isScheduled = false
      // Changes wait while this node is cut off, unless somebody waits for them.
      if (this.#nodes.isUp || this.#options.isConfirmed) this.#flush()
    }
    if (batchMs === 0) setImmediate(flush)
    else this.#timer = setTimeout(flush, batchMs).unref()
  }

  #flush(): void {
    const entries = this.entries
    const sent: Promise<void>[] = []
    let texts: string[] = []
    let byteCount = ENVELOPE_BYTES
    const send = () => {
      if (texts.length === 0) return
      const fields = `{"version":${++this.mark},"entries":[${texts.join()}]}`
      sent.push(this.#nodes.channel.send(this.name, 'changes', fields))
      texts = []
      byteCount = ENVELOPE_BYTES
    }
    for (const [id, note] of this.#pending) {
      const text = entries.entryText(id) ?? entries.removalText(id, note)
      const textBytes = Buffer.byteLength(text) + 1
      if (byteCount + textBytes > this.#options.maxMessageBytes) send()
      texts.push(text)
      byteCount += textBytes
    }
    send()
    this.#pending.clear()
    const { promise, resolve, reject } = this.#flushed
    this.#flushed = deferred()
    const version = this.mark
    // Other nodes notice a lost message by its missing version; somebody may be waiting all the same.
    promise.catch((error: unknown) => this.#nodes.report(error, this.name))
    Promise.all(sent).then(() => resolve(version), reject)
  }

  #copyOf(node: string): TableCopy<Change> {
    this.heard(node)
    const known = this.#copies.get(node)
    if (known !== undefined) return known
    const copy = new TableCopy(node, this.entries, {
      want: (round) => this.#nodes.channel.tell(this.name, 'want', { round }, node),
      reached: (version) => {
        if (this.#options.isConfirmed) this.#nodes.channel.tell(this.name, 'known', { version }, node)
      },
    })
    this.#copies.set(node, copy)
    return copy
  }
}
