// `npm run example chat`: builds, starts an example's server and page, and prints the page's address. Ctrl-C stops it.
// `-- --port 9000` chooses the port of the page, `-- --broker redis` the broker of an example that needs one.
import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { build } from './lib/build.mjs'
import { print, ROOT, runScript, StepError } from './lib/steps.mjs'

const DEFAULT_PORT = 5173
const BROKERS = ['nats', 'redis', 'rabbitmq']

await runScript(async () => {
  const { name, ...options } = readArguments()
  await build()
  // What it imports is installed and compiled by now.
  const { startExample } = await import('./lib/examples.mjs')
  const example = await startExample(name, { ...options, isShown: true })
  print(`The example ${name} runs at ${example.url}. Ctrl-C stops it.`)
  await new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, resolve)
  })
  await example.close()
})

function exampleNames() {
  const folder = path.join(ROOT, 'examples')
  return readdirSync(folder).filter((name) => existsSync(path.join(folder, name, 'package.json')))
}

function readArguments() {
  const options = { port: { type: 'string' }, broker: { type: 'string', default: 'nats' } }
  const { positionals, values } = parseArgs({ allowPositionals: true, options })
  const [name = ''] = positionals
  const names = exampleNames()
  if (positionals.length !== 1 || !names.includes(name)) {
    throw new StepError(`npm run example <name> needs one of these names: ${names.join(', ')}`)
  }
  const port = Number(values.port ?? DEFAULT_PORT)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new StepError(`${values.port} is not a port.`)
  if (!BROKERS.includes(values.broker)) throw new StepError(`--broker is one of ${BROKERS.join(', ')}`)
  return { name, port, broker: values.broker }
}
