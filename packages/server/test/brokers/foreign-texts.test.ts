import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRedisBroker } from 'webmq-broker-redis'
import { historyOf, SseClient } from 'webmq-conformance'
import { sharedService } from 'webmq-services'
import type { Broker } from '../../src/kernel/ports/broker.js'
import { LOG_PLACES, type LogPlace, writeForeign } from '../texts/foreign-log.js'
import { House, LEASE_MS } from '../texts/house.js'
import { readRow } from '../texts/readers.js'
import { type HostileText, TEXTS } from '../texts/texts.js'
import { createSink, freshNamespace, OPTIONS } from './redis-node.js'

// One text in the log of a broker was a key that no node could read, those that started later included, and ended the nodes
// that followed its stream: a log outlives what has written it, and other programs write to it.

/** One of each kind: with the memory broker, the table has all of them. */
const KINDS = [
  ...['an honest text', '100,000 nested lists', '257 nested objects', 'NUL, raw', 'numbers with their digits'],
  ...['1e400', 'nothing', 'a byte order mark', 'no UTF-8'],
]
const CHOSEN = TEXTS.filter(({ name }) => KINDS.includes(name))

interface Written {
  readonly key: string
  readonly place: LogPlace
  readonly text: HostileText
}

describe('a text in the log of a Redis', () => {
  let writer: Broker
  let plain: Redis
  let url: string
  let first: House
  const brokerNamespace = freshNamespace()
  const written: Written[] = []
  const open = () => House.open({ broker: url, brokerNamespace, retain: [] })

  beforeAll(async () => {
    url = (await sharedService('redis')).url
    first = await open()
    plain = new Redis(url)
    const history = { ...historyOf('#=100000,1d'), historyMaxBytes: 1_073_741_824 }
    writer = await createRedisBroker({
      ...OPTIONS,
      ...history,
      maxPayloadBytes: 2 * 1_048_576,
      broker: url,
      brokerNamespace,
    })
    await writer.start(createSink())
  })

  afterAll(async () => {
    await writer.stop()
    await first.close()
    const keys = await plain.keys(`${brokerNamespace}*`)
    if (keys.length > 0) await plain.del(keys)
    plain.disconnect()
  })

  it('does no harm to a node that follows it', async () => {
    expect(CHOSEN.map(({ name }) => name).toSorted()).toEqual(KINDS.toSorted())
    const harms: Record<string, string> = {}
    for (const place of LOG_PLACES) {
      for (const text of CHOSEN) {
        const key = `${place.replaceAll(/\W+/g, '-')}.${CHOSEN.indexOf(text)}`
        written.push({ key, place, text })
        const headers = { authorization: `Bearer ${first.token}` }
        const follower = new SseClient(first.api.port, `/sse?stream=${key}`, { headers })
        await follower.response()
        await writeForeign(writer, place, text, key)
        const harm = await first.harm()
        follower.destroy()
        if (harm !== '') harms[`${text.name} as ${place}`] = harm
      }
    }
    expect(harms).toEqual({})
  })

  it('is a message when another program has written it with the script of the log', async () => {
    const log = `${brokerNamespace}/log`
    const script = (await plain.hget(`${log}/state`, 'publish')) ?? ''
    const outcomes: Record<string, string> = {}
    for (const [index, text] of CHOSEN.entries()) {
      const key = `script.${index}`
      await plain.eval(script, 1, log, key, text.bytes)
      const came = await first.arrived(key)
      outcomes[text.name] = `${came?.equals(text.bytes) ? 'as written' : `other: ${came}`}${await first.harm()}`
    }
    expect(outcomes).toEqual(Object.fromEntries(CHOSEN.map(({ name }) => [name, 'as written'])))
  })

  it('is read without harm by every door of a node that starts later', async () => {
    await using later = await open()
    const cells: Record<string, string> = {}
    const wanted: Record<string, string> = {}
    for (const { key, place, text } of written) {
      const row = await readRow(later, key, text, place)
      Object.assign(cells, row.cells)
      Object.assign(wanted, row.wanted)
    }
    expect(cells).toEqual(wanted)
  })

  it('does no harm when leases end and ended streams become one message', async () => {
    await new Promise((resolve) => setTimeout(resolve, 2 * LEASE_MS))
    expect(await first.harm()).toBe('')
  })
})
