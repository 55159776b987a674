import type { Keyspace, Stream, StreamEntry } from './keyspace.js'
import { type Reply, ReplyError } from './resp.js'

/** `MAXLEN ~` drops whole nodes of this many entries, as Redis does by default. */
const NODE_ENTRIES = 100

/** XADD with `MAXLEN ~ count`, and an id that is given. */
export function add(keys: Keyspace, key: string, args: readonly string[]): Reply {
  const isBounded = args[0]?.toUpperCase() === 'MAXLEN'
  if (isBounded && args[1] !== '~') throw new ReplyError('ERR the model knows MAXLEN ~ only')
  const [id = '', ...fields] = isBounded ? args.slice(3) : args
  const match = /^(\d+)-(\d+)$/.exec(id)
  if (match === null) throw new ReplyError('ERR the model knows whole ids only')
  const [high, low] = [Number(match[1]), Number(match[2])]
  const stream = keys.stream(key) ?? keys.set<Stream>(key, { entries: [], high: 0, low: 0 })
  if (high < stream.high || (high === stream.high && low <= stream.low))
    throw new ReplyError('ERR The ID specified in XADD is equal or smaller than the target stream top item')
  const before = { high: stream.high, low: stream.low }
  keys.changed(() => {
    stream.entries.pop()
    Object.assign(stream, before)
  })
  stream.entries.push({ id, high, low, fields })
  Object.assign(stream, { high, low })
  keys.appended()
  const surplus = isBounded ? stream.entries.length - Number(args[2]) : 0
  if (surplus >= NODE_ENTRIES) drop(keys, stream, surplus - (surplus % NODE_ENTRIES))
  return id
}

/** XTRIM with `MINID id`. */
export function trim(keys: Keyspace, key: string, [kind, id = '']: readonly string[]): Reply {
  if (kind?.toUpperCase() !== 'MINID') throw new ReplyError('ERR the model knows MINID only')
  const stream = keys.stream(key)
  if (stream === undefined) return 0
  const [high = 0, low = 0] = id.split('-').map(Number)
  const count = firstFrom(stream.entries, high, low)
  if (count > 0) drop(keys, stream, count)
  return count
}

/** XRANGE; `isBackwards`: XREVRANGE. */
export function range(keys: Keyspace, key: string, args: readonly string[], isBackwards: boolean): Reply {
  const [from = '', to = ''] = isBackwards ? [args[1], args[0]] : args
  const entries = keys.stream(key)?.entries ?? []
  const [fromHigh = 0, fromLow = 0] = from === '-' ? [] : from.split('-').map(Number)
  const [toHigh = 0, toLow = Number.POSITIVE_INFINITY] =
    to === '+' ? [Number.POSITIVE_INFINITY] : to.split('-').map(Number)
  const [first, end] = [firstFrom(entries, fromHigh, fromLow), firstFrom(entries, toHigh, toLow + 1)]
  const limit = args[2]?.toUpperCase() === 'COUNT' ? Number(args[3]) : Number.POSITIVE_INFINITY
  const chosen = isBackwards
    ? entries.slice(Math.max(first, end - limit), Math.max(first, end)).reverse()
    : entries.slice(first, Math.min(end, first + limit))
  return chosen.map(({ id, fields }) => [id, fields])
}

function drop(keys: Keyspace, stream: Stream, count: number): void {
  const dropped = stream.entries.splice(0, count)
  keys.changed(() => stream.entries.unshift(...dropped))
}

/** The first entry with this id or a greater one. */
function firstFrom(entries: readonly StreamEntry[], high: number, low: number): number {
  let [from, to] = [0, entries.length]
  while (from < to) {
    const middle = (from + to) >> 1
    const entry = entries[middle] as StreamEntry
    if (entry.high < high || (entry.high === high && entry.low < low)) from = middle + 1
    else to = middle
  }
  return from
}
