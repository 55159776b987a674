import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createServer } from 'webmq-server'
import { givenOptions } from '../../packages/server/test/cli/given-options.js'
import { runInProcess } from '../../packages/server/test/cli/in-process.js'
import { signedToken, TOKEN_SECRET } from '../signed-token.js'
import { blocksFor } from './examples.js'
import { Machine, type StartedServer } from './machine.js'
import type { Block } from './page-blocks.mjs'
import { commandsOf, isExcused } from './reasons.js'

const KEY = 'k'.repeat(32)
const TOKEN = signedToken('alice', 3_600)
const SECRETS = [
  ...['api.key', 'key.txt', 'secret', 'secret.txt'],
  ...['webmq', 'old', 'new', 'mesh'].map((name) => `run/secrets/${name}`),
]
const CERTIFICATES = [
  ['fullchain.pem', 'privkey.pem'],
  ['a.pem', 'a.key'],
  ['b.pem', 'b.key'],
  ['localhost+2.pem', 'localhost+2-key.pem'],
  ['fullchain.pem', 'privkey.pem'].map((file) => `etc/letsencrypt/live/app.example.com/${file}`),
  ['etc/ssl/rabbit-ca.pem', 'etc/ssl/rabbit.key'],
] as const

/** The server that `sub`, `pub`, `top`, `doctor` and curl reach. */
const server = createServer({
  port: 0,
  logLevel: 'silent',
  apiKeys: [KEY],
  jwt: { secret: TOKEN_SECRET },
  history: ['orders.#=100,1h'],
  retain: ['prices.#'],
  origins: ['https://app.example.com'],
  closeTimeoutMs: 500,
})
const { examples } = blocksFor(import.meta.url)
const commandsHere = (block: Block) => commandsOf(block).filter((command) => !isExcused(block, command))
const blocks = examples().filter((block) => commandsHere(block).length > 0)
const pages = [...new Set(blocks.map(({ page }) => page))]
let address = ''
let publishing: NodeJS.Timeout

beforeAll(async () => {
  const { port } = await server.start()
  address = `127.0.0.1:${port}`
  for (let count = 0; count < 10; count++) await server.publish('orders.7', { count })
  publishing = setInterval(() => {
    for (const key of ['chat.1', 'news.1', 'prices.a']) void server.publish(key, { text: 'hi' })
  }, 50)
})

afterAll(async () => {
  clearInterval(publishing)
  await server.stop({ drainMs: 0 })
})

/** What a reader replaces by their own. */
const onThisMachine = (command: string, token: string) =>
  command
    .replaceAll('wss://example.com', `ws://${address}`)
    .replaceAll('https://example.com', `http://${address}`)
    .replaceAll('http://127.0.0.1:8080', `http://${address}`)
    .replaceAll('http://127.0.0.1:9090', `http://${address}`)
    .replaceAll('--idle 90s', '--idle 1s')
    .replaceAll('eyJ…', token)
    // The folder of the page has a file already.
    .replace(/config init$/, 'config init first.json')

/** Checks the flags as they are written, and starts the server: alone, without a broker, and where nobody else listens. */
async function expectToStart({ args, env }: StartedServer): Promise<void> {
  const { exitCode, stderr } = await runInProcess(['config', 'check', '--json', ...args], { env })
  expect([exitCode, stderr], args.join(' ')).toEqual([0, ''])
  const { broker, mesh, ...options } = givenOptions(args, env)
  const adminPort = options.adminPort === undefined ? {} : { adminPort: 0 }
  const started = createServer({ ...options, ...adminPort, host: '127.0.0.1', port: 0, logLevel: 'silent' })
  try {
    await started.start()
  } finally {
    await started.stop({ drainMs: 0 })
  }
}

describe.each(pages)('%s', (page) => {
  let machine: Machine
  const before = process.cwd()
  /** Of `token create`. */
  let token = ''

  beforeAll(async () => {
    machine = new Machine({ WEBMQ_TOKEN: TOKEN, WEBMQ_URL: `ws://${address}/ws`, WEBMQ_HTTP: `http://${address}` })
    machine.write(Object.fromEntries(SECRETS.map((file) => [file, KEY])))
    machine.write({
      'photo.jpg': 'JFIF',
      'token.txt': TOKEN,
      'webmq.json': '{ "port": 9000, "maxPayloadBytes": "64KiB" }',
    })
    for (const [cert, key] of CERTIFICATES) await machine.writeCertificate(cert, key)
    process.chdir(machine.folder)
  })
  afterAll(() => {
    process.chdir(before)
    machine.remove()
  })

  it.each(blocks.filter((block) => block.page === page))('the commands of line $line run', async (block) => {
    for (const command of commandsHere(block)) {
      const { output, servers } = await machine.run(onThisMachine(command, token))
      token = /^eyJ\S+/m.exec(output)?.[0] ?? token
      for (const started of servers) await expectToStart(started)
    }
  })
})
