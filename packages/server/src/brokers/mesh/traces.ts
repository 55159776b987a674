import type { GapReason } from 'webmq-client/protocol'
import type { Position } from '../../ports/broker.js'
import type { Origin, Origins } from './origins.js'
import { Trace, type Vector } from './trace.js'

/** Of each origin, the sequence up to which a client has its messages. */
export type Seen = ReadonlyMap<Origin, number>

/** The log of another life of a node, as far as this one was told. */
interface Traced {
  readonly trace: Trace
  /** When its life ended, in milliseconds of a clock that never goes back. */
  goneAtMs: number | undefined
}

/** Clients of a node that is gone come back within this time, and their positions still mean something. */
const REMEMBERED_MS = 600_000
/** Nodes that are gone and whose traces are kept, 64 KiB each at most; those that went first are forgotten first. */
const MAX_REMEMBERED = 32

/** Finds places in the logs of other nodes in terms of what all nodes know: how far each origin had come there. */
export class Traces {
  readonly #origins: Origins
  readonly #byLife = new Map<string, Traced>()

  constructor(origins: Origins) {
    this.#origins = origins
  }

  /** The trace of this node, or of one that is linked, begins, or begins anew. */
  start(life: string, startOffset: number, start: Vector): Trace {
    const trace = new Trace(startOffset, start)
    this.#set(life, trace, undefined)
    return trace
  }

  /** The trace of a node that is gone, told by another one; `undefined` when as much of it is known. */
  startGone(life: string, startOffset: number, endOffset: number, start: Vector, nowMs: number): Trace | undefined {
    const known = this.#byLife.get(life)
    if (known !== undefined && (known.goneAtMs === undefined || known.trace.endOffset >= endOffset)) return undefined
    const trace = new Trace(startOffset, start)
    this.#set(life, trace, nowMs)
    return trace
  }

  /** The node is gone, or cut off. */
  gone(life: string, nowMs: number): void {
    const traced = this.#byLife.get(life)
    if (traced !== undefined) this.#set(life, traced.trace, nowMs)
  }

  /** Traces of nodes that are gone. */
  *allGone(): Generator<readonly [origin: Origin, trace: Trace]> {
    for (const [life, { trace, goneAtMs }] of this.#byLife) {
      if (goneAtMs !== undefined) yield [this.#origins.of(life), trace]
    }
  }

  forget(nowMs: number): void {
    for (const [life, { goneAtMs }] of this.#byLife) {
      if (goneAtMs !== undefined && nowMs - goneAtMs > REMEMBERED_MS) this.#byLife.delete(life)
    }
  }

  /** The one life whose id begins so; `undefined` when there is none, or more. */
  lifeOf(prefix: string): string | undefined {
    const lives = [...this.#byLife.keys()].filter((life) => life.startsWith(prefix))
    return lives.length === 1 ? lives[0] : undefined
  }

  /** What a client has seen that stands at a place; `beyond` when the trace has not come so far, else why it cannot be told. */
  seenAt({ epoch, offset }: Position): Seen | 'beyond' | GapReason {
    const trace = this.#byLife.get(epoch)?.trace
    if (trace === undefined) return 'epoch-changed'
    if (offset < trace.startOffset) return 'history-expired'
    const vector = trace.at(offset)
    if (vector === undefined) return 'beyond'
    const seen = new Map<Origin, number>()
    for (const [index, sequence] of vector) {
      const origin = this.#origins.at(index)
      if (origin !== undefined) seen.set(origin, sequence)
    }
    return seen
  }

  /** The last to be set stands last. */
  #set(life: string, trace: Trace, goneAtMs: number | undefined): void {
    this.#byLife.delete(life)
    this.#byLife.set(life, { trace, goneAtMs })
    const gone = [...this.#byLife].filter(([, { goneAtMs }]) => goneAtMs !== undefined)
    for (const [oldest] of gone.slice(0, Math.max(0, gone.length - MAX_REMEMBERED))) this.#byLife.delete(oldest)
  }
}
