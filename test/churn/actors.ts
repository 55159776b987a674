import { setTimeout as sleep } from 'node:timers/promises'
import { WebMQClient } from 'webmq-client'
import { presence, request, respond, work } from 'webmq-client/parts'
import { openStream } from 'webmq-client/stream'
import { WebSocket } from 'ws'
import type { TrafficNode } from '../traffic/node.js'

const DISTINCT_MS = 20
const TTL_SECONDS = 2
/** Every third is left to its time to live, and to its lease. */
const LEFT_SHARE = 1 / 3

/** Who comes with new names, does something at one node or several, and goes. */
export type Actor = (nodeOf: () => TrafficNode, name: string) => Promise<void>

const connect = (node: TrafficNode) => new WebMQClient({ url: node.url, WebSocket })

/** Listens to keys and patterns that nobody has used before, and publishes there. */
const listener: Actor = async (nodeOf, name) => {
  const client = connect(nodeOf())
  const publisher = connect(nodeOf())
  try {
    for (const pattern of [`churn.${name}.*`, `live.${name}`]) await client.listen(pattern, () => undefined).ready
    await publisher.publish(`churn.${name}.a`, { name })
    await publisher.publish(`live.${name}`, { name })
  } finally {
    await Promise.all([client.close(), publisher.close()])
  }
}

const groupMember: Actor = async (nodeOf, name) => {
  const client = connect(nodeOf())
  const publisher = connect(nodeOf())
  try {
    await work(`jobs.${name}`, () => undefined, { client, group: `group-${name}` }).ready
    await respond(`ask.${name}`, (value) => value, { client }).ready
    await publisher.publish(`jobs.${name}`, { name })
    await request(`ask.${name}`, name, { client: publisher })
  } finally {
    await Promise.all([client.close(), publisher.close()])
  }
}

const member: Actor = async (nodeOf, name) => {
  const client = connect(nodeOf())
  const other = connect(nodeOf())
  try {
    await presence(`room.${name}`, { client }).enter({ name })
    const watched = presence(`room.${name}`, { client: other })
    watched.on('enter', () => undefined)
    await watched.enter({ name: 'other' })
    await sleep(DISTINCT_MS)
  } finally {
    await Promise.all([client.close(), other.close()])
  }
}

const writer: Actor = async (nodeOf, name) => {
  const client = connect(nodeOf())
  try {
    const stream = await openStream(`churn.stream.${name}`, { client })
    await stream.append(name)
    // Otherwise its lease ends it.
    if (Math.random() > LEFT_SHARE) await stream.end()
  } finally {
    await client.close()
  }
}

/** A stream of Durable Streams with a time to live, written and read at any node. */
const durable: Actor = async (nodeOf, name) => {
  const ask = async (method: string, headers: Readonly<Record<string, string>> = {}, body?: string) => {
    const { status } = await nodeOf().http(
      method,
      `/streams/churn.durable.${name}`,
      body === undefined ? undefined : Buffer.from(body),
      headers,
    )
    if (status === undefined || status >= 400) throw new Error(`${method} of a stream: ${status}`)
  }
  const type = { 'content-type': 'text/plain' }
  await ask('PUT', { ...type, 'stream-ttl': `${TTL_SECONDS}` })
  for (let seq = 0; seq < 3; seq++)
    await ask('POST', { ...type, 'producer-id': name, 'producer-epoch': '0', 'producer-seq': `${seq}` }, name)
  await ask('GET')
  const end = Math.random()
  if (end < LEFT_SHARE) await ask('DELETE')
  else if (end < 2 * LEFT_SHARE) await ask('POST', { 'stream-closed': 'true' })
}

/** By their names. */
export const ACTORS: Readonly<Record<string, Actor>> = { listener, groupMember, member, writer, durable }
/** Without a log that nodes share there are none. */
export const NEEDS_SHARED_LOG: ReadonlySet<string> = new Set(['writer', 'durable'])
