import type { Keyspace } from './keyspace.js'
import { OK, Pairs, type Reply } from './resp.js'
import { add, range, trim } from './streams.js'

type Command = (keys: Keyspace, key: string, args: readonly string[]) => Reply

/** Commands on keys: the part that the scripts, the driver and its tests use. */
export const KEY_COMMANDS: Readonly<Record<string, Command>> = {
  HGET: (keys, key, [field = '']) => keys.hash(key)?.get(field) ?? null,
  HMGET: (keys, key, fields) => fields.map((field) => keys.hash(key)?.get(field) ?? null),
  HLEN: (keys, key) => keys.hash(key)?.size ?? 0,
  HGETALL: (keys, key) => new Pairs(...[...(keys.hash(key) ?? [])].flat()),
  HSET(keys, key, pairs) {
    let addedCount = 0
    for (let at = 0; at < pairs.length; at += 2)
      addedCount += Number(setField(keys, key, pairs[at] ?? '', pairs[at + 1] ?? ''))
    return addedCount
  },
  HSETNX(keys, key, [field = '', value = '']) {
    if (keys.hash(key)?.has(field) === true) return 0
    setField(keys, key, field, value)
    return 1
  },
  HDEL(keys, key, fields) {
    const hash = keys.hash(key)
    let count = 0
    for (const field of fields) {
      const before = hash?.get(field)
      if (hash === undefined || before === undefined) continue
      keys.changed(() => hash.set(field, before))
      hash.delete(field)
      count++
    }
    if (hash?.size === 0) keys.delete(key)
    return count
  },
  RPUSH(keys, key, values) {
    const list = keys.list(key) ?? keys.set<string[]>(key, [])
    keys.changed(() => list.splice(list.length - values.length))
    return list.push(...values)
  },
  LINDEX: (keys, key, [index]) => keys.list(key)?.at(Number(index)) ?? null,
  LLEN: (keys, key) => keys.list(key)?.length ?? 0,
  LPOP(keys, key) {
    const list = keys.list(key)
    const value = list?.shift()
    if (list === undefined || value === undefined) return null
    keys.changed(() => list.unshift(value))
    if (list.length === 0) keys.delete(key)
    return value
  },
  DEL: remove,
  UNLINK: remove,
  EXISTS: (keys, key) => Number(keys.has(key)),
  RENAME(keys, key, [to = '']) {
    keys.rename(key, to)
    return OK
  },
  PEXPIRE: (keys, key, [ms]) => Number(keys.expire(key, Date.now() + Number(ms))),
  PTTL: (keys, key) => (keys.has(key) ? (keys.expiresAtMs(key) ?? Date.now() - 1) - Date.now() : -2),
  XADD: add,
  XTRIM: trim,
  XLEN: (keys, key) => keys.stream(key)?.entries.length ?? 0,
  XRANGE: (keys, key, args) => range(keys, key, args, false),
  XREVRANGE: (keys, key, args) => range(keys, key, args, true),
  SET(keys, key, [value = '']) {
    keys.set(key, new Map([['', value]]))
    return OK
  },
  GET: (keys, key) => keys.hash(key)?.get('') ?? null,
}

/** Refused when memory is full, as Redis marks them. */
export const NEEDS_MEMORY = new Set(['HSET', 'HSETNX', 'RPUSH', 'XADD', 'SET'])

function setField(keys: Keyspace, key: string, field: string, value: string): boolean {
  const hash = keys.hash(key) ?? keys.set(key, new Map<string, string>())
  const before = hash.get(field)
  keys.changed(() => {
    if (before === undefined) hash.delete(field)
    else hash.set(field, before)
  })
  hash.set(field, value)
  return before === undefined
}

function remove(keys: Keyspace, key: string, more: readonly string[]): Reply {
  return [key, ...more].filter((each) => keys.delete(each)).length
}
