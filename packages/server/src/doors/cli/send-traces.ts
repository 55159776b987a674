import { invalidOption } from '../../kernel/base/invalid-option.js'
import { isNotInstalled } from '../../kernel/base/load-library.js'
import { LogPace } from '../../kernel/base/log-pace.js'
import type { Logger } from '../../kernel/base/logger.js'
import { unsupportedVersion } from '../../kernel/base/supported-versions.js'
import { within } from '../../kernel/base/within.js'
import { VERSION } from '../../kernel/node/version.js'

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] as const
/** Optional peers, of versions that fit each other. There is no `sdk-trace-node` of the versions after them. */
export const INSTALL = [
  'npm install @opentelemetry/api@1.9 @opentelemetry/sdk-trace-node@2 @opentelemetry/resources@2',
  '@opentelemetry/exporter-trace-otlp-http@0.223',
].join(' ')
const LIBRARIES = INSTALL.match(/@opentelemetry\/[\w-]+/g) ?? []
/** For the last spans, when the process ends. A collector that does not answer must not delay it. */
const FLUSH_LIMIT_MS = 1_000
const WARNING_INTERVAL_MS = 60_000

interface Libraries {
  readonly api: typeof import('@opentelemetry/api')
  readonly sdk: typeof import('@opentelemetry/sdk-trace-node')
  readonly resources: typeof import('@opentelemetry/resources')
  readonly otlp: typeof import('@opentelemetry/exporter-trace-otlp-http')
}

const loadLibraries = async (): Promise<Libraries> => ({
  api: await import('@opentelemetry/api'),
  sdk: await import('@opentelemetry/sdk-trace-node'),
  resources: await import('@opentelemetry/resources'),
  otlp: await import('@opentelemetry/exporter-trace-otlp-http'),
})

/**
 * Sends the spans of this process to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names, as OTLP over HTTP, in JSON.
 * The libraries read the other variables of OpenTelemetry themselves: headers, name of the service, sampler, batches.
 *
 * @returns Sends the last spans when it is disposed of; `undefined` without the variable, or when the process has an SDK.
 * @throws {WebMQError} `E_OPTION_INVALID`: the libraries are not installed, or not in these versions, or the protocol is
 *   `grpc`.
 */
export async function sendTraces(
  env: NodeJS.ProcessEnv,
  logger: Pick<Logger, 'info' | 'warn'>,
  load: () => Promise<Libraries> = loadLibraries,
): Promise<AsyncDisposable | undefined> {
  const variable = ENDPOINTS.find((name) => (env[name] ?? '') !== '')
  if (variable === undefined || env.OTEL_SDK_DISABLED === 'true' || env.OTEL_TRACES_EXPORTER === 'none')
    return undefined
  if (await hasProvider()) return undefined
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? env.OTEL_EXPORTER_OTLP_PROTOCOL
  if (protocol === 'grpc')
    throw invalidOption(`${variable}: traces go over HTTP, not grpc; name the port for http/json`)
  for (const name of LIBRARIES) {
    const unsupported = unsupportedVersion(name)
    if (unsupported !== undefined) throw invalidOption(`${variable} needs ${unsupported.reason}: ${INSTALL}`)
  }
  const { api, sdk, resources, otlp } = await load().catch((cause: unknown) => {
    throw LIBRARIES.some((name) => isNotInstalled(cause, name))
      ? invalidOption(`${variable} needs libraries that are not installed: ${INSTALL}`)
      : cause
  })
  const pace = new LogPace(WARNING_INTERVAL_MS)
  const warn = (reason: string) => {
    const leftOutCount = pace.take()
    if (leftOutCount !== undefined) logger.warn({ reason, leftOutCount }, 'traces cannot be sent')
  }
  const ignore = () => undefined
  const log = { error: warn, warn, info: ignore, debug: ignore, verbose: ignore }
  api.diag.setLogger(log, { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true })
  const named = resources.resourceFromAttributes({ 'service.name': 'webmq-server', 'service.version': VERSION })
  const fromEnv = resources.detectResources({ detectors: [resources.envDetector] })
  const provider = new sdk.NodeTracerProvider({
    resource: resources.defaultResource().merge(named).merge(fromEnv),
    spanProcessors: [new sdk.BatchSpanProcessor(new otlp.OTLPTraceExporter())],
  })
  provider.register()
  logger.info({ variable }, 'traces are sent')
  return {
    async [Symbol.asyncDispose]() {
      const isSent = await within(provider.shutdown(), FLUSH_LIMIT_MS).catch(() => false)
      if (!isSent) warn('the collector has not taken the last ones')
    },
  }
}

/** Whether `node --import` has registered an SDK: that one sends, and may need none of the libraries here. */
async function hasProvider(): Promise<boolean> {
  const api = await import('@opentelemetry/api').catch(() => undefined)
  if (api === undefined) return false
  const provider = api.trace.getTracerProvider()
  const nothing = new api.ProxyTracerProvider().getDelegate()
  return !(provider instanceof api.ProxyTracerProvider && provider.getDelegate() === nothing)
}
