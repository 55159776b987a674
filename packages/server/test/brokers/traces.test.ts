import { context, trace } from '@opentelemetry/api'
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { freePort, type ServiceKind, sharedService } from 'webmq-services'
import { parseTraceparent } from '../../src/features/observing/tracing/tracer.js'
import { createServer, type ServerOptions, type WebMQServer } from '../../src/index.js'

const exporter = new InMemorySpanExporter()
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
beforeAll(() => provider.register())
afterAll(async () => {
  await provider.shutdown()
  trace.disable()
  context.disable()
})

const BEGUN = { timeout: 20_000, interval: 50 }
type Kind = ServiceKind | 'mesh'

/** Options of two nodes that meet at a broker. */
async function meet(kind: Kind): Promise<readonly [ServerOptions, ServerOptions]> {
  const namespace = {
    brokerNamespace: `traces-${process.pid}-${kind}`,
    logLevel: 'silent',
    host: '127.0.0.1',
    port: 0,
  } as const
  if (kind !== 'mesh') {
    const options = { ...namespace, broker: (await sharedService(kind)).url } as const
    return [options, options]
  }
  const places = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`] as const
  const of = (listen: string) => ({ ...namespace, broker: `mesh://${places.join()}`, mesh: { listen } }) as const
  return [of(places[0]), of(places[1])]
}

// The page of operations said that RabbitMQ and a mesh carry no trace; nobody had looked.
it.for<[Kind, 'logged' | 'not logged']>(
  (['redis', 'nats', 'rabbitmq', 'mesh'] as const).flatMap((kind) => [
    [kind, 'logged'],
    [kind, 'not logged'],
  ]),
)(
  'over %s a trace leads from the publish to the handlers of all nodes, of what is %s',
  async ([kind, log], { onTestFinished }) => {
    const key = `traced.${kind}.${log === 'logged' ? 'yes' : 'no'}`
    const nodes: WebMQServer[] = []
    for (const options of await meet(kind)) {
      const node = createServer({ ...options, ...(log === 'logged' && { history: ['traced.#=100'] }) })
      onTestFinished(() => node.stop({ drainMs: 0 }))
      nodes.push(node)
    }
    await Promise.all(nodes.map((node) => node.start()))
    const heard = nodes.map(() => [] as (string | undefined)[])
    for (const [index, node] of nodes.entries())
      await node.listen(key, (_payload, { traceparent }) => void heard[index]?.push(traceparent)).ready
    const [publisher] = nodes
    // Nodes of a mesh hear of each other's listens later.
    await vi.waitFor(async () => {
      await publisher?.publish(key, 'begin')
      expect(heard.every((each) => each.length > 0)).toBe(true)
    }, BEGUN)
    const root = trace.getTracer('test').startSpan('root')
    const { traceId } = root.spanContext()
    await context.with(trace.setSpan(context.active(), root), () => publisher?.publish(key, 'traced'))
    root.end()
    const ofTrace = () => exporter.getFinishedSpans().filter((span) => span.spanContext().traceId === traceId)
    await vi.waitFor(
      () =>
        expect(
          ofTrace()
            .map(({ name }) => name)
            .sort(),
        ).toEqual(['process', 'process', 'publish', 'root']),
      BEGUN,
    )
    const [published] = ofTrace().filter(({ name }) => name === 'publish')
    expect(published?.parentSpanContext?.spanId).toBe(root.spanContext().spanId)
    for (const span of ofTrace().filter(({ name }) => name === 'process'))
      expect(span.parentSpanContext?.spanId).toBe(published?.spanContext().spanId)
    for (const each of heard) expect(parseTraceparent(each.at(-1) ?? '')?.traceId).toBe(traceId)
  },
)
