import type { Deadline, Deadlines } from '../deadlines.js'
import { deferred } from '../ports/deferred.js'
import type { GroupChannel } from './channel.js'
import { type GroupNodeMessage, MAX_ENTRIES, type SlotEntry } from './node-message.js'
import type { Slot, Slots } from './slots.js'

/** What a {@link Directory} works with. */
export interface DirectoryContext {
  /** Name of this node. */
  readonly node: string
  readonly channel: Pick<GroupChannel, 'send' | 'forget'>
  readonly slots: Slots
  readonly deadlines: Pick<Deadlines, 'set' | 'clear'>
  /** A monotonic clock, in milliseconds; the clock of the deadlines. */
  readonly now: () => number
  /** Nodes that are known, and do not answer within this time, are not waited for. */
  readonly waitMs: number
  /** When a node crashes, its members are gone everywhere within this time. */
  readonly ttlMs: number
  /** The members of a node are gone: what was handed to it and not taken goes to others. */
  readonly onGone: (node: string) => void
  readonly onError: (error: unknown, text: string) => void
}

/** Share of the time to live after which a lease is renewed, so that two renewals may get lost. */
const LEASE_SHARE = 1 / 3
/** A node that starts is alone if no other node has answered by then. */
const ALONE_MS = 50
/** Most nodes, so that forged names from the broker cannot fill the memory. */
const MAX_PEERS = 1_024

interface Peer {
  /** Version of its table that this node knows; `undefined`: none. */
  version: number | undefined
  /** Version of this node's table that the peer knows. */
  seenVersion: number
  expiry: Deadline | undefined
  /** Its table has been asked for, and has not come. */
  isWanted: boolean
}

/**
 * Keeps the queue groups of all nodes alike: each node tells the others how many members it has of each. A table has a
 * version. A node that misses a change asks for the whole table.
 */
export class Directory {
  readonly #context: DirectoryContext
  readonly #peers = new Map<string, Peer>()
  /** Grows with each change of this node's members. */
  #version = 0
  readonly #changed = new Set<Slot>()
  #isFlushScheduled = false
  #flushed = deferred<number>()
  #isUp = false
  #isOpen = false
  readonly #looks = new Set<() => void>()
  #droppedCount = 0

  constructor(context: DirectoryContext) {
    this.#context = context
  }

  /** Other nodes. */
  get peerCount(): number {
    return this.#peers.size
  }

  /** Entries of other nodes that were not kept: there were too many. */
  get droppedCount(): number {
    return this.#droppedCount
  }

  /** Whether messages to other nodes pass at present. */
  get isUp(): boolean {
    return this.#isUp
  }

  /** Asks all nodes for their tables. Resolves when they have answered, at the latest after `waitMs`. */
  async open(): Promise<void> {
    this.#isOpen = true
    this.#isUp = true
    await this.#hello()
    await this.#until(() => this.#peers.size > 0, ALONE_MS)
    await this.#until(
      () => [...this.#peers.values()].every(({ version }) => version !== undefined),
      this.#context.waitMs,
    )
    this.#dropPeers(({ version }) => version === undefined)
    this.#renew()
  }

  /** The broker's status changed. Other nodes are silent while the broker is away; their members stay meanwhile. */
  status(isUp: boolean): void {
    if (!this.#isOpen || isUp === this.#isUp) return
    this.#isUp = isUp
    for (const [node, peer] of this.#peers) this.#heard(node, peer)
    if (isUp) this.gap()
  }

  /** Messages of other nodes may be missing. */
  gap(): void {
    // Later: the sink of a broker must not call it.
    if (this.#isOpen) setImmediate(() => void this.#hello())
  }

  /** The number of this node's members has changed. Other nodes are told at the end of this turn. */
  changed(slot: Slot): void {
    if (!this.#isOpen) return
    this.#changed.add(slot)
    if (this.#isFlushScheduled) return
    this.#isFlushScheduled = true
    setImmediate(() => this.#flush())
  }

  /**
   * Resolves when the other nodes know of all changes until now, at the latest after `waitMs`.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE`
   */
  async whenKnown(): Promise<void> {
    if (!this.#isFlushScheduled) return
    const version = await this.#flushed.promise
    const isBehind = ({ seenVersion }: Peer) => seenVersion < version
    await this.#until(() => ![...this.#peers.values()].some(isBehind), this.#context.waitMs)
    // One that is gone must not make everybody wait. It is known again with its next message.
    if (this.#isUp) this.#dropPeers(isBehind)
  }

  /** A message of another node. Never calls the broker from within this call. */
  receive(message: Exclude<GroupNodeMessage, { kind: 'task' | 'taken' | 'reply' }>): void {
    const { node } = message
    if (message.kind === 'bye') {
      this.#remove(node)
      this.#look()
      return
    }
    const peer = this.#peerOf(node)
    if (peer === undefined) return
    this.#heard(node, peer)
    switch (message.kind) {
      case 'lease':
        if (message.version === 0 && peer.version === undefined) peer.version = 0
        if (message.asks) this.#tellTable(node)
        if (peer.version !== message.version) this.#want(node, peer)
        break
      case 'want':
        this.#tellTable(node)
        break
      case 'table':
        if (message.isFirst) {
          this.#context.slots.removeNode(node)
          for (const other of message.peers) this.#peerOf(other)
        }
        this.#take(node, message.entries)
        if (message.isLast) this.#knows(node, peer, message.version)
        break
      case 'change':
        if (peer.version === message.version - 1) {
          this.#take(node, message.entries)
          this.#knows(node, peer, message.version)
        } else if (peer.version === undefined || peer.version < message.version) this.#want(node, peer)
        break
      case 'seen':
        peer.seenVersion = Math.max(peer.seenVersion, message.version)
        break
    }
    this.#look()
  }

  /** A node does not answer: it gets nothing until it is heard again. */
  suspect(node: string): void {
    const peer = this.#peers.get(node)
    if (peer === undefined) return
    peer.version = undefined
    peer.isWanted = false
    this.#context.slots.removeNode(node)
    this.#context.onGone(node)
  }

  /** The node stops. */
  stop(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    const { channel, node, onError } = this.#context
    // Now: the broker stops next.
    channel
      .send({ kind: 'bye', node })
      .catch((error: unknown) => onError(error, 'other nodes do not know that this one stops'))
    this.#flushed.resolve(this.#version)
    for (const look of [...this.#looks]) look()
  }

  #hello(): Promise<void> {
    return this.#context.channel
      .send({ kind: 'lease', node: this.#context.node, version: this.#version, asks: true })
      .catch((error: unknown) => this.#context.onError(error, 'queue groups of other nodes could not be asked for'))
  }

  #renew(): void {
    const { deadlines, now, ttlMs, node } = this.#context
    if (!this.#isOpen) return
    // A node that has never had a member costs nothing.
    if (this.#version > 0 && this.#isUp) this.#send({ kind: 'lease', node, version: this.#version, asks: false })
    deadlines.set(now() + ttlMs * LEASE_SHARE, () => this.#renew())
  }

  #flush(): void {
    const { channel, node } = this.#context
    this.#isFlushScheduled = false
    const entries = [...this.#changed].map(entryOf)
    this.#changed.clear()
    const flushed = this.#flushed
    this.#flushed = deferred()
    const sent: Promise<void>[] = []
    for (let start = 0; start < entries.length; start += MAX_ENTRIES) {
      const part = entries.slice(start, start + MAX_ENTRIES)
      sent.push(channel.send({ kind: 'change', node, version: ++this.#version, entries: part }))
    }
    const version = this.#version
    // Nobody may be waiting.
    flushed.promise.catch(() => undefined)
    Promise.all(sent).then(() => flushed.resolve(version), flushed.reject)
  }

  #tellTable(to: string): void {
    const { slots, node } = this.#context
    const entries = [...slots.all()].filter(({ members }) => members.length > 0).map(entryOf)
    const version = this.#version
    const peers = [...this.#peers.keys()].filter((peer) => peer !== to)
    for (let start = 0; start === 0 || start < entries.length; start += MAX_ENTRIES) {
      this.#send(
        {
          kind: 'table',
          node,
          version,
          isFirst: start === 0,
          isLast: start + MAX_ENTRIES >= entries.length,
          entries: entries.slice(start, start + MAX_ENTRIES),
          peers: start === 0 ? peers : [],
        },
        to,
      )
    }
  }

  #want(to: string, peer: Peer): void {
    if (peer.isWanted) return
    peer.isWanted = true
    this.#send({ kind: 'want', node: this.#context.node }, to)
  }

  #knows(node: string, peer: Peer, version: number): void {
    peer.version = version
    peer.isWanted = false
    this.#send({ kind: 'seen', node: this.#context.node, version }, node)
  }

  #take(node: string, entries: readonly SlotEntry[]): void {
    for (const { count, ...name } of entries) {
      try {
        this.#context.slots.setRemote(node, name, count)
      } catch {
        // Too many: counted and shown.
        this.#droppedCount++
      }
    }
  }

  /** Later: the sink of a broker must not call it. */
  #send(message: GroupNodeMessage, to?: string): void {
    setImmediate(() => {
      this.#context.channel
        .send(message, to)
        .catch((error: unknown) => this.#context.onError(error, `the message ${message.kind} could not be published`))
    })
  }

  #peerOf(node: string): Peer | undefined {
    const known = this.#peers.get(node)
    if (known !== undefined || node === this.#context.node) return known
    if (this.#peers.size >= MAX_PEERS) {
      this.#droppedCount++
      return undefined
    }
    const peer: Peer = { version: undefined, seenVersion: 0, expiry: undefined, isWanted: false }
    this.#peers.set(node, peer)
    this.#heard(node, peer)
    return peer
  }

  /** Gives a node the time of a lease. None expires while this node is cut off. */
  #heard(node: string, peer: Peer): void {
    const { deadlines, now, ttlMs } = this.#context
    if (peer.expiry !== undefined) deadlines.clear(peer.expiry)
    // One that has never had a member renews nothing.
    if (this.#isUp) peer.expiry = deadlines.set(now() + ttlMs, () => this.#expire(node, peer))
  }

  #expire(node: string, peer: Peer): void {
    if (peer.version === 0) return
    this.#remove(node)
  }

  #remove(node: string): void {
    const peer = this.#peers.get(node)
    if (peer?.expiry !== undefined) this.#context.deadlines.clear(peer.expiry)
    this.#peers.delete(node)
    this.#context.channel.forget(node)
    this.#context.slots.removeNode(node)
    this.#context.onGone(node)
  }

  #dropPeers(isOver: (peer: Peer) => boolean): void {
    for (const [node, peer] of [...this.#peers]) if (isOver(peer)) this.#remove(node)
  }

  #look(): void {
    for (const look of [...this.#looks]) look()
  }

  /** Resolves when the condition holds, after the time, or when the node stops. */
  #until(condition: () => boolean, timeoutMs: number): Promise<void> {
    if (condition() || !this.#isOpen) return Promise.resolve()
    const { deadlines, now } = this.#context
    return new Promise((resolve) => {
      const end = () => {
        deadlines.clear(deadline)
        this.#looks.delete(look)
        resolve()
      }
      const look = () => {
        if (condition() || !this.#isOpen) end()
      }
      const deadline = deadlines.set(now() + timeoutMs, end)
      this.#looks.add(look)
    })
  }
}

function entryOf({ name, members }: Slot): SlotEntry {
  return { ...name, count: members.length }
}
