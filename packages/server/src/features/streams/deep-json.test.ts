import { afterEach, describe, expect, it, vi } from 'vitest'
import type { WirePayload, WriteKind } from 'webmq-client/protocol'
import type { FakeClient } from 'webmq-conformance'
import { FakeServer } from '../../../test/fake-server.js'
import { memoryOptions } from '../../../test/memory-options.js'
import { MemoryBroker } from '../../adapters/brokers/memory/broker.js'

// One message of 10 kB ended the process. Its JSON was parsed without a limit of depth, and written again into a roll-up, whose
// RangeError nobody caught.

const LEVELS = [257, 1_000, 6_000, 100_000]
const fakes: FakeServer[] = []
const rejections: unknown[] = []
const noteRejection = (reason: unknown) => rejections.push(reason)

process.on('unhandledRejection', noteRejection)

afterEach(async () => {
  await Promise.all(fakes.splice(0).map((fake) => fake.server.stop({ drainMs: 0 })))
  await new Promise((resolve) => setImmediate(resolve))
  expect(rejections.splice(0)).toEqual([])
})

async function start(): Promise<{ fake: FakeServer; broker: MemoryBroker; client: FakeClient }> {
  const options = { history: ['#=100000'], maxPayloadBytes: 400_000, insecure: true }
  const broker = new MemoryBroker(memoryOptions(options))
  const fake = await FakeServer.start(options, { broker })
  fakes.push(fake)
  return { fake, broker, client: await fake.connect() }
}

function deep(levels: number): string {
  return '['.repeat(levels) + ']'.repeat(levels)
}

let sentCount = 0

async function answered(client: FakeClient, message: object): Promise<string> {
  const id = `m${++sentCount}`
  client.send({ ...message, id } as Parameters<FakeClient['send']>[0])
  return await vi.waitFor(() => {
    const answer = client.messages.find((message) => 'id' in message && message.id === id)
    if (answer === undefined) throw new Error('no answer')
    return answer.verb === 'error' ? answer.code : answer.verb
  })
}

function write(client: FakeClient, key: string, sequence: number, kind: WriteKind, payload: WirePayload = '') {
  return answered(client, { verb: 'stream', key, stream: 'S', sequence, kind, payload })
}

/** As a node of an older version, or another program, may have done. */
async function logged(broker: MemoryBroker, key: string, place: string, payload: string | Uint8Array) {
  const isBinary = typeof payload !== 'string'
  await broker.publish({ key, payload: Buffer.from(payload), isBinary, attributes: { stream: `S:${place}` } })
}

async function readOver(client: FakeClient, key: string) {
  const id = `m${++sentCount}`
  client.send({ verb: 'read', id, key })
  return await vi.waitFor(() => {
    const answer = client.messages.find((message) => 'id' in message && message.id === id)
    if (answer?.verb !== 'ok') throw new Error('no answer')
    return answer.result
  })
}

describe('JSON that is nested deeply', () => {
  it.each(LEVELS)('is refused where the server looks into it: %d levels', async (levels) => {
    const { fake, client } = await start()
    expect(await write(client, 'a', 0, 'start', deep(levels))).toBe('E_PAYLOAD_INVALID')
    expect(await write(client, 'a', 0, 'start', deep(256))).toBe('ok')
    expect(await write(client, 'a', 1, 'append', deep(levels))).toBe('E_PAYLOAD_INVALID')
    expect(await write(client, 'a', 1, 'end', deep(levels))).toBe('E_PAYLOAD_INVALID')
    expect(await write(client, 'a', 1, 'fail', deep(levels))).toBe('E_PAYLOAD_INVALID')
    expect(await write(client, 'a', 1, 'end', deep(256))).toBe('ok')
    const presence = {
      verb: 'presence',
      key: 'a',
      op: 'enter',
      member: 'm'.repeat(22),
      data: deep(Math.min(levels, 2_000)),
    }
    expect(await answered(client, presence)).toBe('E_PAYLOAD_INVALID')
    let value: unknown = []
    for (let level = 1; level < levels; level++) value = [value]
    await expect(fake.server.stream('b', { meta: value })).rejects.toMatchObject({ code: 'E_PAYLOAD_INVALID' })
    const writer = await fake.server.stream('b')
    await expect(writer.end(value)).rejects.toMatchObject({ code: 'E_PAYLOAD_INVALID' })
    await writer.end('it goes on')
    expect(await fake.server.readStream('b')).toMatchObject({ status: 'end', result: 'it goes on' })
  })

  it.each(LEVELS)('that is in the log is told as missing, and harms nobody: %d levels', async (levels) => {
    const { fake, broker, client } = await start()
    for (const [key, messages] of Object.entries({
      start: [
        ['0:start', deep(levels)],
        ['1:append', '"text"'],
        ['2:end', '7'],
      ],
      end: [
        ['0:start', '1'],
        ['1:append', '"text"'],
        ['2:end', deep(levels)],
      ],
      append: [
        ['0:start', '1'],
        ['1:append', deep(levels)],
        ['2:append', '"text"'],
        ['3:fail', '{"message":"m"}'],
      ],
      text: [
        ['0:start', 'no JSON'],
        ['1:append', '"text"'],
        ['2:append', 'no JSON'],
        ['3:end', Uint8Array.of(1)],
      ],
    } as const)) {
      // Both a node that follows the key, and one that reads the log.
      const { server } = fake
      for (const [place, payload] of messages) {
        await logged(broker, `${key}.read`, place, payload)
        await logged(broker, `${key}.live`, place, payload)
        if (place === '0:start') expect(await write(client, `${key}.live`, 0, 'beat')).toBe('ok')
      }
      for (const name of [`${key}.read`, `${key}.live`]) {
        expect(await server.readStream(name)).toMatchObject({ isCut: true, text: 'text' })
        expect(await readOver(client, name)).toMatchObject({ stream: 'S', isCut: true })
      }
      expect((await server.readStream(`${key}.read`)).status).toBe((await server.readStream(`${key}.live`)).status)
    }
    expect(fake.log.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([])
  })

  it('in a roll-up of an older version is missing, and the text is not', async () => {
    const { fake, broker, client } = await start()
    const head = { status: 'end', appendCount: 1, byteCount: 6, upTo: 3, result: 7 }
    const json = `${JSON.stringify(head).slice(0, -1)},"meta":${deep(6_000)}}`
    await logged(broker, 'a', '2:text', `${json}\n"text"`)
    expect(await fake.server.readStream('a')).toMatchObject({ isCut: true, text: 'text', result: 7, meta: undefined })
    expect(await readOver(client, 'a')).toMatchObject({ isCut: true, result: 7 })
  })

  it('or nonsense in a roll-up of another program throws nowhere', async () => {
    const { fake, broker } = await start()
    const heads = ['', 'null', '[]', '"x"', '{', '{}', '{"status":"end","appendCount":1,"byteCount":1,"shared":{}}']
    for (const [index, head] of heads.entries()) {
      await logged(broker, `k${index}`, '2:text', `${head}\n"text"`)
      expect(await fake.server.readStream(`k${index}`)).toMatchObject({ id: undefined })
    }
  })
})

it('gives readers what a start and an end say as their writer has sent it: all digits, in a roll-up too', async () => {
  const { fake, broker, client } = await start()
  const meta = '{ "id" :1724442618569203714,\r\n"f":1.0}'
  expect(await write(client, 'a', 0, 'start', meta)).toBe('ok')
  expect(await write(client, 'a', 1, 'append', '"text"')).toBe('ok')
  const shown = async () => {
    const before = client.frames.length
    await readOver(client, 'a')
    return client.frames
      .slice(before)
      .map(({ data }) => String(data))
      .join()
  }
  expect(await shown()).toContain('"meta":{ "id" :1724442618569203714,  "f":1.0}')
  expect(await write(client, 'a', 2, 'end', '-0.10e400')).toBe('ok')
  const rollUp = async () => {
    const { messages } = await broker.read({ view: 'log' }, ['a'])
    return messages.map(({ attributes }) => attributes?.stream).includes('S:2:text')
  }
  await vi.waitFor(async () => expect(await rollUp()).toBe(true))
  expect(await shown()).toContain('"result":-0.10e400')
  expect(await shown()).toContain('"meta":{ "id" :1724442618569203714,  "f":1.0}')
  expect(await fake.server.readStream('a')).toMatchObject({ isCut: false, result: Number.NEGATIVE_INFINITY })
})
