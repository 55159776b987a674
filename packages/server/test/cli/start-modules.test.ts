import { expect, it } from 'vitest'
import { startCli } from './process.js'

/** Writes the address of each module that is imported to standard error. */
const HOOK = `
import { writeSync } from 'node:fs'
export const load = (url, context, next) => {
  writeSync(2, 'loads ' + url + '\\n')
  return next(url, context)
}`
const asUrl = (code: string): string => `data:text/javascript,${encodeURIComponent(code)}`
const REGISTER = asUrl(`import { register } from 'node:module'; register(${JSON.stringify(asUrl(HOOK))})`)

/** What only some servers need: each is loaded when it is asked for. */
const OTHERS = [
  /\/jose\//,
  /\/ws\//,
  /\/(ioredis|amqplib|msgpackr|pg)\//,
  /\/@nats-io\//,
  /\/(webmq-)?(broker|outbox)-\w+\/dist\//,
  /\/@opentelemetry\/(?!api\/)/,
  /^node:(https|tls|dgram|http2|worker_threads)$/,
  /dist\/adapters\/brokers\/(?!memory\/|log\/)/,
  /dist\/features\/outbox\/(?!row\.js)/,
  /dist\/adapters\/transports\/(ws|response-body)\//,
  /dist\/adapters\/transports\/(certificates|packaged)\.js/,
  /dist\/doors\/http\/api\/(?!(statuses|operator-shapes)\.js)/,
  /dist\/kernel\/node\/metrics\/(table|of-process)\.js/,
  /dist\/doors\/cli\/(doctor|init|top)\/(?!flags\.js)/,
  /dist\/doors\/cli\/completion\/(?!shells\.js)/,
  /dist\/doors\/cli\/client\/(?!flags\.js)/,
]

it('loads nothing at a start that was not asked for', async () => {
  const { child, output, ended } = startCli(['--port', '0'], { env: { NODE_OPTIONS: `--import=${REGISTER}` } })
  await expect.poll(() => output.stdout).toContain('listens on')
  child.kill()
  await ended
  const loaded = output.stderr.split('\n').flatMap((line) => (line.startsWith('loads ') ? [line.slice(6)] : []))
  expect(loaded.some((url) => url.endsWith('dist/adapters/transports/native/transport.js'))).toBe(true)
  expect(loaded.filter((url) => OTHERS.some((other) => other.test(url)))).toEqual([])
})
