import { ReplyError } from './resp.js'

export interface StreamEntry {
  readonly id: string
  readonly high: number
  readonly low: number
  readonly fields: readonly string[]
}

export interface Stream {
  readonly entries: StreamEntry[]
  high: number
  low: number
}

type Value = Map<string, string> | string[] | Stream

/** What one command has changed, newest last. */
interface Unit {
  readonly undo: (() => void)[]
  appendedCount: number
}

/** Commands that can be taken back. */
const MAX_UNITS = 4_096
const WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value'

/** The keys of a Redis, which can lose what the newest commands have changed: a whole script or nothing, as its files. */
export class Keyspace {
  readonly #values = new Map<string, Value>()
  readonly #expiresAtMs = new Map<string, number>()
  readonly #units: Unit[] = []
  #unit: Unit = { undo: [], appendedCount: 0 }

  /** What is changed from now on is of another command. */
  begin(): void {
    if (this.#unit.undo.length === 0) return
    this.#units.push(this.#unit)
    if (this.#units.length > MAX_UNITS) this.#units.shift()
    this.#unit = { undo: [], appendedCount: 0 }
  }

  /** Takes back whole commands, until this many entries of streams are gone. */
  lose(entryCount: number): void {
    this.begin()
    for (let lost = 0; lost < entryCount; ) {
      const unit = this.#units.pop()
      if (unit === undefined) break
      for (const undo of unit.undo.reverse()) undo()
      lost += unit.appendedCount
    }
  }

  changed(undo: () => void): void {
    this.#unit.undo.push(undo)
  }

  appended(): void {
    this.#unit.appendedCount++
  }

  has(key: string): boolean {
    return this.#find(key) !== undefined
  }

  hash(key: string): Map<string, string> | undefined {
    const value = this.#find(key)
    if (value === undefined || value instanceof Map) return value
    throw new ReplyError(WRONG_TYPE)
  }

  list(key: string): string[] | undefined {
    const value = this.#find(key)
    if (value === undefined || Array.isArray(value)) return value
    throw new ReplyError(WRONG_TYPE)
  }

  stream(key: string): Stream | undefined {
    const value = this.#find(key)
    if (value === undefined || !(value instanceof Map || Array.isArray(value))) return value
    throw new ReplyError(WRONG_TYPE)
  }

  set<Kind extends Value>(key: string, value: Kind): Kind {
    const [before, expiry] = [this.#values.get(key), this.#expiresAtMs.get(key)]
    this.changed(() => {
      this.#put(this.#values, key, before)
      this.#put(this.#expiresAtMs, key, expiry)
    })
    this.#values.set(key, value)
    this.#expiresAtMs.delete(key)
    return value
  }

  delete(key: string): boolean {
    const value = this.#find(key)
    if (value === undefined) return false
    this.set(key, value)
    this.#values.delete(key)
    return true
  }

  rename(from: string, to: string): void {
    const value = this.#find(from)
    if (value === undefined) throw new ReplyError('ERR no such key')
    const expiry = this.#expiresAtMs.get(from)
    this.delete(from)
    this.set(to, value)
    if (expiry !== undefined) this.#expiresAtMs.set(to, expiry)
  }

  expire(key: string, atMs: number): boolean {
    if (!this.has(key)) return false
    const before = this.#expiresAtMs.get(key)
    this.changed(() => this.#put(this.#expiresAtMs, key, before))
    this.#expiresAtMs.set(key, atMs)
    return true
  }

  /** `undefined` for a key that does not expire. */
  expiresAtMs(key: string): number | undefined {
    return this.#expiresAtMs.get(key)
  }

  #put<Kind>(map: Map<string, Kind>, key: string, value: Kind | undefined): void {
    if (value === undefined) map.delete(key)
    else map.set(key, value)
  }

  #find(key: string): Value | undefined {
    const expiry = this.#expiresAtMs.get(key)
    if (expiry !== undefined && expiry <= Date.now()) {
      this.#values.delete(key)
      this.#expiresAtMs.delete(key)
    }
    return this.#values.get(key)
  }
}
