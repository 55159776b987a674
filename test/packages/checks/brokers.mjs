import { readFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../../../scripts/lib/steps.mjs'
import { startedService } from '../check.mjs'
import { expectHello } from './client.mjs'
import { startServer } from './server.mjs'

const NODE_COUNT = 3
/** A broker starts, some twenty packages are installed, and three nodes. */
const LIMIT_MS = 180_000

/** How each starts here, empty. */
const BROKERS = {
  redis: ({ startRedis }) => startRedis({ isPrivate: true }),
  rabbitmq: ({ startRabbitmq }) => startRabbitmq({ isPrivate: true }),
  nats: ({ startNats }) => startNats({ isPrivate: true, hasJetStream: true }),
}

/** A client at each node. Each publishes once, all hear all, and every node has the log. */
const PLAY = `
import { WebMQClient } from 'webmq-client'
import { history } from 'webmq-client/parts'

const WebSocket = globalThis.WebSocket ?? (await import('ws')).WebSocket
const clients = process.argv.slice(2).map((url) => new WebMQClient({ url, WebSocket }))
const wanted = clients.map((_, index) => index).join()
const heard = clients.map((client) => {
  const froms = []
  let ready
  const whole = new Promise((resolve) => {
    ready = client.listen('trial.*', ({ from }) => froms.push(from) === clients.length && resolve()).ready
  })
  return { froms, ready, whole }
})
await Promise.all(heard.map(({ ready }) => ready))
for (const [from, client] of clients.entries()) await client.publish('trial.' + from, { from })
await Promise.all(heard.map(({ whole }) => whole))
for (const { froms } of heard) if (froms.sort().join() !== wanted) throw new Error('a client heard ' + froms)
for (const client of clients) {
  for (const from of clients.keys()) {
    const { messages } = await history('trial.' + from, { client })
    if (messages.map(({ payload }) => payload.from).join() !== String(from)) throw new Error('the log has ' + JSON.stringify(messages))
  }
}
for (const client of clients) client.close()
console.log('heard hello')
`

/** The command of the broker's page. */
function installOf(name) {
  const page = readFileSync(path.join(ROOT, 'packages', `broker-${name}`, 'README.md'), 'utf8')
  const [, packages] = /^npm install (webmq-server webmq-broker-\w+)$/m.exec(page) ?? []
  if (packages === undefined) throw new Error(`the page of webmq-broker-${name} does not say how to install it`)
  return packages.split(' ')
}

async function playThreeNodes({ newProject }, name, node) {
  const broker = await startedService(async () => BROKERS[name](await import('webmq-services')))
  const nodes = []
  try {
    // With engine-strict, npm refuses what asks for another Node.
    const project = await newProject(`three-${name}-${node}`, { node, npmrc: 'engine-strict=true' })
    await project.run('npm', 'install', ...installOf(name))
    const options = ['--broker', broker.url, '--history', 'trial.#=100,10m']
    for (let count = 0; count < NODE_COUNT; count++) {
      nodes.push(await startServer(project, ['npx', 'webmq-server'], options))
    }
    await project.run('npm', 'install', 'webmq-client', 'ws')
    project.write({ 'play.js': PLAY })
    await expectHello(await project.run('node', 'play.js', ...nodes.map(({ url }) => url)))
    const installed = JSON.parse(await project.run('npm', 'ls', '--json', '--depth', '0')).dependencies
    return Object.entries(installed)
      .map(([each, { version }]) => `${each} ${version}`)
      .join(', ')
  } finally {
    await Promise.all(nodes.map((each) => each.stop()))
    await broker.stop()
  }
}

/** @type {(nodes: readonly number[]) => import('../check.mjs').Check[]} */
export const brokerChecks = (nodes) =>
  nodes.flatMap((node) =>
    Object.keys(BROKERS).map((name) => ({
      name: `Node ${node}: three nodes over ${name}, as its page installs them, hear each other`,
      limitMs: LIMIT_MS,
      run: (context) => playThreeNodes(context, name, node),
    })),
  )
