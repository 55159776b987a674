import type { RedisHost } from './address.js'

/** Number of channels for all keys of a cluster. A pattern that begins with a wildcard needs a subscription to each. */
const BUCKET_COUNT = 256

const SLOT_COUNT = 16_384

/** The channel of a bucket. Because of the braces only the number decides the slot. */
export function bucketChannel(namespace: string, bucket: number): string {
  return `${namespace}:{${bucket}}`
}

/** FNV-1a over the first word, so most patterns need only one bucket. The same on all nodes. */
export function bucketOf(key: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < key.length; at++) {
    const unit = key.charCodeAt(at)
    if (unit === 0x2e) break
    hash = Math.imul(hash ^ unit, 0x01000193)
  }
  return (hash ^ (hash >>> 16)) & (BUCKET_COUNT - 1)
}

export function bucketsOf(pattern: string): readonly number[] {
  const [first = ''] = pattern.split('.', 1)
  if (first === '*' || first === '#') return Array.from({ length: BUCKET_COUNT }, (_, bucket) => bucket)
  return [bucketOf(pattern)]
}

/** The slot of the text between the braces of a name: CRC-16/XMODEM, see the Redis cluster specification. */
function slotOf(tag: string): number {
  let crc = 0
  for (const char of tag) {
    crc ^= char.charCodeAt(0) << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  }
  return (crc & 0xffff) % SLOT_COUNT
}

export interface ClusterMaster {
  readonly host: RedisHost
  readonly buckets: readonly number[]
  readonly hasLog: boolean
}

/**
 * Maps buckets to masters, from the reply to CLUSTER SLOTS. Masters without buckets or log are left out.
 * @param asked The server that replied; used where the reply has no host name.
 * @param logTag The log's text between the braces; `undefined` without a log.
 * @throws when a needed slot has no master
 */
export function mastersOf(reply: unknown, asked: RedisHost, logTag?: string): readonly ClusterMaster[] {
  const ranges = Array.isArray(reply) ? reply.map((range) => rangeOf(range, asked)) : []
  const masters = new Map<string, { readonly host: RedisHost; readonly buckets: number[]; hasLog: boolean }>()
  const masterOf = (tag: string) => {
    const slot = slotOf(tag)
    const range = ranges.find(({ first, last }) => first <= slot && slot <= last)
    if (range === undefined) throw new Error(`no server of the cluster has slot ${slot}`)
    const name = `${range.host.host} ${range.host.port}`
    const master = masters.get(name) ?? { host: range.host, buckets: [], hasLog: false }
    masters.set(name, master)
    return master
  }
  for (let bucket = 0; bucket < BUCKET_COUNT; bucket++) masterOf(String(bucket)).buckets.push(bucket)
  if (logTag !== undefined) masterOf(logTag).hasLog = true
  return [...masters.values()]
}

function rangeOf(range: unknown, asked: RedisHost) {
  const [first, last, master] = Array.isArray(range) ? range : []
  const [host, port] = Array.isArray(master) ? master : []
  const name = typeof host === 'string' && host !== '' && host !== '?' ? host : asked.host
  return { first: Number(first), last: Number(last), host: { host: name, port: Number(port) } }
}
