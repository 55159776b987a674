// Applications that have a peer already, in its oldest and its newest supported version, and then install WebMQ.
import { createServer } from 'node:http'
import { startedService } from '../check.mjs'
import { PEERS } from '../peers.mjs'
import { TOOL_VERSIONS } from '../programs.mjs'
import { PLAYS } from './peer-plays.mjs'
import { startServer } from './server.mjs'

const PROJECT_LIMIT_MS = 90_000
const HAPPY_DOM = 'happy-dom@21.0.4'
const API_KEY = 'a-key-for-the-checks-of-packages'
const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'

/**
 * A part, and the peers that it needs.
 * @typedef {object} Part
 * @property {string} name
 * @property {readonly string[]} installs the packages of ours
 * @property {readonly string[]} peers
 * @property {readonly (readonly string[])[]} [between] further versions, as `name@version`
 * @property {readonly (readonly string[])[]} [versions] in place of the oldest and the newest that are supported
 * @property {(versions: readonly string[]) => readonly string[]} [beside] other packages of the application
 * @property {() => Promise<{ url: string, stop(): Promise<void> }>} [service]
 * @property {(project: import('../project.mjs').Project, url: string, context: object) => Promise<void>} play
 */

/** A package that the server imports has a library of its own, whatever the application has. */
const packaged = (name, packageName, [peer, ...versions], start, more) => ({
  ...served(name, [peer], start, more),
  installs: ['webmq-server', packageName],
  versions: versions.map((version) => [`${peer}@${version}`]),
})

const broker = (name, versions, start) => packaged(name, `webmq-broker-${name.toLowerCase()}`, versions, start)

const served = (name, peers, start, more = {}) => ({
  name,
  installs: ['webmq-server'],
  peers,
  service: async () => start(await import('webmq-services')),
  play: (project, url) => program(project, 'BROKER', url),
  ...more,
})

const client = (peer, text, more = {}) => ({
  name: `webmq-client/${peer}`,
  installs: ['webmq-client'],
  peers: [peer],
  play: (project, _url, { server }) => program(project, text, server.url),
  ...more,
})

/** @type {readonly Part[]} */
const PARTS = [
  broker('Redis', ['ioredis', '4.28.5', '5.3.0'], ({ startRedis }) => startRedis({ isPrivate: true })),
  broker('RabbitMQ', ['amqplib', '0.8.0', '1.2.0'], ({ startRabbitmq }) => startRabbitmq({ isPrivate: true })),
  broker('NATS', ['@nats-io/transport-node', '3.0.0'], ({ startNats }) =>
    startNats({ isPrivate: true, hasJetStream: true }),
  ),
  packaged(
    'the outbox',
    'webmq-outbox-postgres',
    ['pg', '8.4.0', '8.11.0'],
    ({ startPostgres }) => startPostgres({ isPrivate: true }),
    { play: playOutbox },
  ),
  {
    name: 'traces',
    installs: ['webmq-server'],
    peers: [
      '@opentelemetry/api',
      '@opentelemetry/exporter-trace-otlp-http',
      '@opentelemetry/resources',
      '@opentelemetry/sdk-trace-node',
    ],
    play: playTraces,
  },
  {
    name: 'spans in the process',
    installs: ['webmq-server'],
    peers: ['@opentelemetry/api'],
    // An SDK of the application, of versions that `webmq-server` cannot start by itself.
    between: [
      [
        '@opentelemetry/api@1.10.0',
        '@opentelemetry/exporter-trace-otlp-http@0.301.0',
        '@opentelemetry/resources@3.1.1',
      ],
    ],
    play: (project) => program(project, 'SPANS'),
  },
  client('ai', 'AI', {
    between: [['ai@6.0.326']],
    beside: () => [`typescript@${TOOL_VERSIONS.typescript}`],
    play: playAi,
  }),
  client('msgpackr', 'MSGPACK', { name: 'webmq-client/msgpack' }),
  client('yjs', 'YJS', { peers: ['yjs', 'y-protocols'] }),
  client('react', 'REACT', { beside: ([react]) => [react.replace('react', 'react-dom'), HAPPY_DOM] }),
  client('vue', 'VUE', { beside: () => [HAPPY_DOM] }),
  client('svelte', 'SVELTE', { beside: () => [HAPPY_DOM] }),
]

/** Each in versions that no part works with. */
const TOO_OLD = [
  ['pg@7.18.2', '@opentelemetry/api@1.0.4', '@opentelemetry/resources@1.30.1'],
  ['msgpackr@0.6.0', 'react@17.0.2', 'vue@2.7.16', 'svelte@3.59.2', 'yjs@12.3.3', 'y-protocols@0.2.3'],
  ['ai@4.3.19'],
]

/** @type {import('../check.mjs').Check[]} */
export const existingAppChecks = [
  ...PARTS.map((part) => ({
    name: `an existing app with ${part.peers[0]} installs ${part.installs.join(' and ')}: ${part.name}`,
    limitMs: versionsOf(part).length * PROJECT_LIMIT_MS,
    run: (context) => playAll(part, context),
  })),
  {
    name: 'an existing app with peers that are too old installs both, and a part says which version it needs',
    limitMs: TOO_OLD.length * PROJECT_LIMIT_MS,
    run: refuseOld,
  },
  {
    name: 'Node 20: webmq-client with ai and @ai-sdk/react in an empty folder',
    limitMs: PROJECT_LIMIT_MS,
    async run({ newProject, server }) {
      const project = await newProject('empty-ai', { node: 20 })
      await project.run('npm', 'install', 'webmq-client', 'ai', '@ai-sdk/react', 'ws')
      await program(project, 'AI', server.url)
      return installedVersion(project, 'ai')
    },
  },
]

function versionsOf({ peers, between = [], versions }) {
  const every = (which) => peers.map((name) => `${name}@${PEERS.get(name)[which]}`)
  return versions ?? [every('oldest'), ...between, every('newest')]
}

async function playAll(part, context) {
  const service = await startedService(part.service)
  const notes = []
  try {
    for (const versions of versionsOf(part)) {
      const startedAtMs = performance.now()
      const project = await context.newProject(`app-${part.name.replaceAll(/\W+/g, '-')}`)
      await project.run('npm', 'install', '--save-exact', ...versions, ...(part.beside?.(versions) ?? []))
      await project.run('npm', 'install', ...part.installs)
      await part.play(project, service?.url, context)
      notes.push(`${versions[0].match(/@(\d.*)/)[1]} (${Math.round((performance.now() - startedAtMs) / 1_000)} s)`)
    }
  } finally {
    await service?.stop()
  }
  return notes.join(', ')
}

/** Where its program is not there, the check is skipped. */
async function program(project, name, ...args) {
  project.write({ 'play.js': PLAYS[name] })
  const output = await project.run('node', 'play.js', ...args)
  if (!/^played$/m.test(output)) throw new Error(`it has not played:\n${output}`)
}

async function playOutbox(project, url) {
  project.write({
    'schema.js': `
import pg from 'pg'
const client = new pg.Client({ connectionString: process.argv[2] })
await client.connect()
await client.query(process.argv[3])
await client.end()`,
  })
  await project.run('node', 'schema.js', url, await project.run('npx', 'webmq-server', 'outbox', 'schema'))
  await program(project, 'OUTBOX', url)
}

/** A collector gets the span of a publish. */
async function playTraces(project) {
  let received = ''
  const collector = createServer((request, response) => {
    request.setEncoding('utf8').on('data', (text) => (received += text))
    request.on('end', () => response.setHeader('content-type', 'application/json').end('{}'))
  })
  await new Promise((resolve) => collector.listen(0, '127.0.0.1', resolve))
  try {
    const endpoint = `OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:${collector.address().port}`
    const server = await startServer(project, ['env', endpoint, 'npx', 'webmq-server'], ['--api-key', API_KEY])
    const headers = {
      authorization: `Bearer ${API_KEY}`,
      'content-type': 'application/json',
      traceparent: `00-${TRACE_ID}-b7ad6b7169203331-01`,
    }
    const body = JSON.stringify({ key: 'a', payload: 1 })
    const answer = await fetch(`${server.http}/api/publish`, { method: 'POST', headers, body })
    // It sends the last spans.
    await server.stop()
    if (!answer.ok || !received.includes(TRACE_ID)) throw new Error(`${answer.status}, ${received}${server.output()}`)
  } finally {
    collector.close()
  }
}

/** The transport fits the types of the SDK, too. */
async function playAi(project, _url, { server }) {
  project.write({
    'chat.ts': `
import type { ChatInit, UIMessage } from 'ai'
import { type AnswerRequest, streamTransport, writeChunks } from 'webmq-client/ai'
import { createUIMessageStream } from 'ai'
import type { StreamWriter } from 'webmq-client/stream'

export const chat: ChatInit<UIMessage> = { id: '1', transport: streamTransport() }
export const answer = (writer: StreamWriter, { messages }: AnswerRequest) =>
  writeChunks(writer, createUIMessageStream({ originalMessages: [...messages], execute: () => undefined }))
`,
  })
  const options = ['--strict', '--noEmit', '--skipLibCheck', '--target', 'es2022', '--module', 'nodenext']
  await project.run('npx', 'tsc', ...options, '--lib', 'es2023,dom,dom.asynciterable', 'chat.ts')
  await program(project, 'AI', server.url)
}

async function refuseOld({ newProject }) {
  const projects = []
  for (const versions of TOO_OLD) {
    const project = await newProject('app-old')
    await project.run('npm', 'install', '--save-exact', ...versions)
    await project.run('npm', 'install', 'webmq-server', 'webmq-client')
    projects.push(project)
  }
  const [project] = projects
  const ready = await startServer(project)
  await ready.stop()
  const { range } = PEERS.get('@opentelemetry/api')
  const wanted = `spans need @opentelemetry/api ${range}, but 1.0.4 is installed`
  if (!ready.output().includes(wanted)) throw new Error(ready.output())
  await refuses(project, ['--outbox', 'postgres://127.0.0.1/app'], '`npm install webmq-outbox-postgres`')
  await refuses(project, ['--broker', 'redis://127.0.0.1:6379'], '`npm install webmq-broker-redis`')
  return wanted
}

/** The server does not start with these options, and its error has this text. */
async function refuses(project, options, text) {
  const refusal = await project.run('npx', 'webmq-server', ...options).then(
    () => 'it has started',
    ({ message }) => message,
  )
  if (!refusal.includes(text) || !refusal.includes('E_BROKER_MISSING')) throw new Error(refusal)
}

async function installedVersion(project, name) {
  const listed = JSON.parse(await project.run('npm', 'ls', name, '--json', '--depth=0'))
  return `${name} ${listed.dependencies[name].version}`
}
