import { context, SpanStatusCode, trace } from '@opentelemetry/api'
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { FakeServer } from '../../../../test/fake-server.js'
import { FaultyBroker } from '../../../../test/faulty-broker.js'
import { decodeEnvelope, encodeEnvelope } from '../../../adapters/brokers/remote/envelope.js'
import { createServer } from '../../../create-server.js'
import { formatTraceparent, parseTraceparent } from './tracer.js'

const API_KEY = 'a-key-for-the-tests-of-traces'
const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const PARENT = `00-${TRACE_ID}-b7ad6b7169203331-01`

describe('parseTraceparent', () => {
  it('reads a valid one, also of a later version, without the fields that we do not know', () => {
    const parts = { traceId: TRACE_ID, spanId: 'b7ad6b7169203331', traceFlags: 1 }
    expect(parseTraceparent(PARENT)).toEqual(parts)
    expect(parseTraceparent(`cc${PARENT.slice(2)}-what-the-future-brings`)).toEqual(parts)
    expect(formatTraceparent(parts)).toBe(PARENT)
  })

  it.each([
    ['an empty text', ''],
    ['another length', `${PARENT}0`],
    ['a field too many in version 00', `${PARENT}-00`],
    ['version ff', `ff${PARENT.slice(2)}`],
    ['upper case', PARENT.toUpperCase()],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`],
    ['a span id of zeros', `00-${TRACE_ID}-${'0'.repeat(16)}-01`],
    ['a line break', `${PARENT}\n`],
    ['megabytes', `cc${PARENT.slice(2)}-${'a'.repeat(1_000_000)}`],
  ])('ignores %s', (_, text) => {
    expect(parseTraceparent(text)).toBeUndefined()
  })

  it('gives 55 characters for whatever it accepts', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const parts = parseTraceparent(text)
        return parts === undefined || formatTraceparent(parts).length === 55
      }),
    )
  })
})

describe('an envelope', () => {
  const message = { sequence: 1, key: 'a', payload: Buffer.from('x'), isBinary: false, publisher: 7, isLogged: false }
  const node = '0123456789abcdef'

  it('carries a trace, and costs nothing without one', () => {
    const plain = encodeEnvelope(node, { ...message, messageId: 'm' })
    const traced = encodeEnvelope(node, { ...message, messageId: 'm', attributes: { traceparent: PARENT } })
    expect(traced.length - plain.length).toBe(60)
    expect(decodeEnvelope('a', traced)).toMatchObject({ attributes: { traceparent: PARENT }, messageId: 'm', key: 'a' })
    expect(Buffer.from(decodeEnvelope('a', traced)?.payload ?? []).toString()).toBe('x')
    expect(decodeEnvelope('a', plain)?.attributes).toBeUndefined()
  })

  it('is refused when its trace is cut short', () => {
    const traced = encodeEnvelope(node, { ...message, messageId: undefined, attributes: { traceparent: PARENT } })
    expect(decodeEnvelope('a', traced.subarray(0, 40))).toBeUndefined()
  })
})

describe('traces', () => {
  const exporter = new InMemorySpanExporter()
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const spans = () => exporter.getFinishedSpans()
  const spanNamed = (name: string) => spans().find((span) => span.name === name)

  beforeAll(() => provider.register())
  beforeEach(() => exporter.reset())
  afterAll(async () => {
    await provider.shutdown()
    trace.disable()
    context.disable()
  })

  it('lead from the publish of a client to the handler in the process', async () => {
    const fake = await FakeServer.start()
    const seen: unknown[] = []
    const { ready } = fake.server.listen('a.#', (_, { traceparent }) => {
      seen.push(traceparent, trace.getActiveSpan()?.spanContext().traceId)
    })
    await ready
    const client = await fake.connect()
    client.sendRaw(`publish 1 a.b trace=${PARENT}\n1`)
    await fake.settled()
    const [publish, process] = [spanNamed('publish'), spanNamed('process')]
    expect(publish?.spanContext().traceId).toBe(TRACE_ID)
    expect(publish?.parentSpanContext?.spanId).toBe('b7ad6b7169203331')
    expect(publish?.attributes).toMatchObject({ 'messaging.system': 'webmq', 'messaging.destination.name': 'a.b' })
    expect(process?.parentSpanContext?.spanId).toBe(publish?.spanContext().spanId)
    expect(seen).toEqual([`00-${TRACE_ID}-${publish?.spanContext().spanId}-01`, TRACE_ID])
    await fake.server.stop()
  })

  it('begin with the active span of the process, or with the one that a publish names', async () => {
    const fake = await FakeServer.start()
    await trace.getTracer('app').startActiveSpan('request', async (request) => {
      await fake.server.publish('a', 1)
      await fake.server.publish('b', 1, { traceparent: PARENT })
      request.end()
    })
    const parents = spans().map(({ name, parentSpanContext, attributes }) => [
      name,
      attributes['messaging.destination.name'],
      parentSpanContext?.spanId,
    ])
    expect(parents).toEqual([
      ['publish', 'a', spanNamed('request')?.spanContext().spanId],
      ['publish', 'b', 'b7ad6b7169203331'],
      ['request', undefined, undefined],
    ])
    await fake.server.stop()
  })

  it('lead from a request to the HTTP API to a client of the process', async () => {
    const server = createServer({ port: 0, transport: 'ws', logLevel: 'silent', apiKeys: [API_KEY] })
    const { port } = await server.start()
    const seen: unknown[] = []
    await server.listen('#', (_, { traceparent }) => seen.push(traceparent)).ready
    const post = (path: string, body: object, traceparent: string) =>
      fetch(`http://127.0.0.1:${port}/api/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json', traceparent },
        body: JSON.stringify(body),
      })
    expect((await post('publish', { key: 'a', payload: 1 }, PARENT)).status).toBe(200)
    expect((await post('publish/batch', { messages: [{ key: 'b', payload: 1 }] }, PARENT)).status).toBe(200)
    expect((await post('publish', { key: 'c', payload: 1 }, `${PARENT}, ${PARENT}`)).status).toBe(200)
    await expect.poll(() => seen.length).toBe(3)
    const ids = spans().flatMap((span) => (span.name === 'publish' ? [span.spanContext().spanId] : []))
    expect(seen).toEqual([...ids.map((id) => `00-${TRACE_ID}-${id}-01`), undefined])
    await server.stop()
  })

  it('take as long as the broker, and name the code of its refusal', async () => {
    const broker = new FaultyBroker({ timeoutMs: 1 })
    const fake = await FakeServer.start({}, { broker })
    await fake.server.publish('a', 1, { traceparent: PARENT })
    broker.lose()
    await expect(fake.server.publish('a', 1, { traceparent: PARENT })).rejects.toMatchObject({
      code: 'E_BROKER_UNAVAILABLE',
    })
    expect(spans().map(({ status }) => status)).toEqual([
      { code: SpanStatusCode.UNSET },
      { code: SpanStatusCode.ERROR, message: 'E_BROKER_UNAVAILABLE' },
    ])
    await fake.server.stop()
  })

  it('are not begun by messages without a trace, or with one that is not valid', async () => {
    const fake = await FakeServer.start()
    const traces: unknown[] = []
    await fake.server.listen('#', (_, { traceparent }) => traces.push(traceparent)).ready
    const client = await fake.connect()
    client.send({ verb: 'publish', id: '1', key: 'a', echo: true, payload: '1' })
    client.sendRaw('publish 2 a trace=00-nonsense\n1')
    client.sendRaw('publish 3 a trace\n1')
    await fake.server.publish('a', 1, { traceparent: 'nonsense' })
    await fake.settled()
    const answered = client.messages.flatMap((message) => (message.verb === 'ok' ? [message.id] : []))
    expect(answered).toEqual(['1', '2', '3'])
    expect(traces).toEqual([undefined, undefined, undefined, undefined])
    expect(spans()).toEqual([])
    await fake.server.stop()
  })

  it('record the error of a handler, which is logged as before', async () => {
    const fake = await FakeServer.start()
    await fake.server.listen('a', () => {
      throw new Error('a bug')
    }).ready
    await fake.server.publish('a', 1, { traceparent: PARENT })
    await fake.settled()
    expect(spanNamed('process')?.status.code).toBe(SpanStatusCode.ERROR)
    expect(fake.log).toContainEqual(expect.objectContaining({ level: 'error', message: 'a local listener failed' }))
    await fake.server.stop()
  })
})
