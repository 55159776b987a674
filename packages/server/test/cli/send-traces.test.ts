import { createServer as createHttpServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest'
import { freePort } from 'webmq-services'
import { sendTraces } from '../../src/doors/cli/send-traces.js'
import { createLogger } from '../../src/kernel/base/logger.js'
import { startCli } from './process.js'

const KEY = 'a-key-for-the-tests-of-traces'
const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const UNTIL = { timeout: 20_000, interval: 20 }

interface Received {
  readonly path: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: {
    readonly resourceSpans: readonly {
      readonly resource: { readonly attributes: readonly { key: string; value: { stringValue?: string } }[] }
      readonly scopeSpans: readonly { readonly spans: readonly { name: string; traceId: string }[] }[]
    }[]
  }
}

/** A collector that takes OTLP over HTTP, in JSON. */
const received: Received[] = []
const collector = createHttpServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  received.push({ path: request.url, headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString()) })
  response.setHeader('content-type', 'application/json').end('{}')
})
let endpoint = ''

beforeAll(async () => {
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
  endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
})
beforeEach(() => void received.splice(0))
afterAll(() => void collector.close())

/** Starts a server, publishes one message that belongs to a trace, and stops it. */
async function publishOnce(env: NodeJS.ProcessEnv) {
  const { child, output, ended } = startCli(['--port', '0', '--transport', 'ws', '--api-key', KEY], { env })
  onTestFinished(() => void child.kill('SIGKILL'))
  await expect.poll(() => output.stdout, UNTIL).toMatch(/listens on ws:\/\/\S+\//)
  const [, host] = /listens on ws:\/\/([^/]+)\//.exec(output.stdout) ?? []
  const answer = await fetch(`http://${host}/api/publish`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${KEY}`,
      'content-type': 'application/json',
      traceparent: `00-${TRACE_ID}-b7ad6b7169203331-01`,
    },
    body: JSON.stringify({ key: 'a', payload: 1 }),
  })
  expect(answer.status).toBe(200)
  child.kill('SIGTERM')
  return await ended
}

it('sends the span of a publish to the collector of OTEL_EXPORTER_OTLP_ENDPOINT, at the latest when the process ends', async () => {
  const { exitCode, stderr } = await publishOnce({
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-team=blue',
  })
  expect(exitCode, stderr).toBe(0)
  expect(stderr).not.toContain('cannot be sent')
  expect(received).toHaveLength(1)
  expect(received[0]).toMatchObject({ path: '/v1/traces', headers: { 'x-team': 'blue' } })
  const [{ resource, scopeSpans } = { resource: { attributes: [] }, scopeSpans: [] }] =
    received[0]?.body.resourceSpans ?? []
  expect(scopeSpans.flatMap(({ spans }) => spans)).toMatchObject([{ name: 'publish', traceId: TRACE_ID }])
  expect(resource.attributes).toContainEqual({ key: 'service.name', value: { stringValue: 'webmq-server' } })
})

it('reads the name of the service and the sampler from the variables of OpenTelemetry', async () => {
  const named = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SERVICE_NAME: 'chat' }
  expect((await publishOnce(named)).exitCode).toBe(0)
  expect(JSON.stringify(received)).toContain('"chat"')
  received.splice(0)
  const none = { ...named, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' }
  expect((await publishOnce(none)).exitCode).toBe(0)
  expect(received).toEqual([])
})

it('warns of a collector that is away, and ends in order', async () => {
  const { exitCode, stderr } = await publishOnce({
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await freePort()}`,
  })
  expect(exitCode, stderr).toBe(0)
  expect(stderr.match(/traces cannot be sent/g)).toHaveLength(1)
})

it('says what to install, and which protocol it speaks', async () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }
  const logger = createLogger({ level: 'silent', format: 'json' })
  const missing = () => Promise.reject(Object.assign(new Error('not found'), { code: 'ERR_MODULE_NOT_FOUND' }))
  await expect(sendTraces(env, logger, missing)).rejects.toMatchObject({
    code: 'E_OPTION_INVALID',
    message: expect.stringMatching(/npm install .*@opentelemetry\/exporter-trace-otlp-http@/),
  })
  const grpc = { ...env, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }
  await expect(sendTraces(grpc, logger, missing)).rejects.toThrow('not grpc')
  for (const off of [{}, { ...env, OTEL_SDK_DISABLED: 'true' }, { ...env, OTEL_TRACES_EXPORTER: 'none' }]) {
    expect(await sendTraces(off, logger, missing)).toBeUndefined()
  }
})
