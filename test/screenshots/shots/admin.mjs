// The admin page of two nodes over Redis, with clients that talk, come back and ask for what is not granted.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { ROOT, StepError } from '../../../scripts/lib/steps.mjs'
import { signedToken } from '../signed-token.mjs'

const BIN = path.join(ROOT, 'packages', 'server', 'bin', 'webmq-server.js')
const KEY = 'the-api-key-of-these-pictures-of-32-bytes'
const SECRET = 'a secret of 32 bytes or more, as HS256 wants it'
const GRANTS = [{ keys: ['chat.#', 'prices.*'], allow: ['listen', 'publish', 'presence'] }]
const USERS = ['ada', 'bob', 'carla', 'dimitri', 'eve', 'farid', 'grace', 'hiro', 'ines', 'jonas', 'kira', 'lars']
const ROOMS = ['lobby', 'support', 'berlin']
const NODE_COUNT = 2
const TURN_MS = 100
const TURNS_PER_MOVE = 40
/** So long the page is open before its picture: the plots fill. */
const FILL_MS = 120_000

async function startNodes() {
  const { freePort, startRedis } = await import('webmq-services')
  const redis = await startRedis({ isPrivate: true, args: ['--appendonly', 'yes'] })
  const closing = [() => redis.stop()]
  const close = async () => {
    for (const end of closing.toReversed()) await end()
  }
  try {
    const nodes = []
    for (let count = 0; count < NODE_COUNT; count++) {
      const [port, adminPort] = [await freePort(), await freePort()]
      closing.push(await startNode(port, adminPort, redis.url))
      nodes.push({ url: `ws://127.0.0.1:${port}/ws`, admin: `http://127.0.0.1:${adminPort}` })
    }
    closing.push(await startTraffic(nodes))
    return { url: nodes[0].admin, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function startNode(port, adminPort, redisUrl) {
  const flags = ['--port', port, '--admin-port', adminPort, '--broker', redisUrl, '--history', 'chat.#=1000,1d']
  const env = { ...process.env, WEBMQ_API_KEY: KEY, WEBMQ_JWT_SECRET: SECRET }
  const child = spawn(process.execPath, [BIN, ...flags.map(String)], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  await new Promise((resolve, reject) => {
    const take = (text) => {
      output += text
      if (/ listens on /.test(output)) resolve()
    }
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', take)
    child.once('close', () => reject(new StepError(`A node did not start:\n${output}`)))
  })
  return async () => {
    child.kill('SIGTERM')
    await once(child, 'close')
  }
}

/** Rooms that talk more and less, prices that nobody logs, and now and then somebody who is cut or asks for too much. */
async function startTraffic(nodes) {
  const { WebMQClient } = await import('webmq-client')
  const { WebSocket } = await import('ws')
  const clients = USERS.map((user, index) => {
    const token = () => signedToken(user, GRANTS, SECRET)
    const client = new WebMQClient({ url: nodes[index % nodes.length].url, token, WebSocket })
    client.on('error', () => undefined)
    client.listen(`chat.${ROOMS[index % ROOMS.length]}.message`, () => undefined)
    if (index % 2 === 0) client.listen('chat.*.message', () => undefined)
    if (index % 4 !== 0) client.listen('prices.*', () => undefined)
    return client
  })
  await Promise.all(clients.map((client) => client.connect()))
  let turn = 0
  const quietly = (publish) => publish.catch(() => undefined)
  const timer = setInterval(() => {
    turn++
    const writer = clients[turn % clients.length]
    const room = ROOMS[turn % ROOMS.length]
    quietly(writer.publish(`chat.${room}.message`, { text: `message ${turn}`, at: Date.now() }))
    const count = Math.round(12 + 9 * Math.sin(turn / 90) + 4 * Math.random())
    for (let index = 0; index < count; index++) {
      quietly(writer.publish(`prices.${100 + index}`, (100 + Math.random()).toFixed(2), { ephemeral: true }))
    }
    if (turn % 23 === 0) quietly(writer.publish('orders.paid', {}))
    if (turn % TURNS_PER_MOVE === 0) void move(nodes[0].admin, USERS[(turn / TURNS_PER_MOVE) % USERS.length])
  }, TURN_MS)
  return async () => {
    clearInterval(timer)
    await Promise.all(clients.map((client) => client.close({ flushMs: 0 })))
  }
}

/** Ends the connections of a user as a node does that is restarted: the client comes back, and asks for what it missed. */
async function move(admin, user) {
  await fetch(`${admin}/api/disconnect`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ user, code: 'E_DRAIN' }),
  })
}

async function open(page, { url }, view = '') {
  await page.goto(`${url}/admin${view}`)
  await page.locator('#login [name=key]').fill(KEY)
  await page.locator('#login button').click()
  await page.locator('#main').waitFor()
}

const connectionsOf = async (page, started) => {
  await open(page, started, '#connections')
  await page.locator('#connections td').first().waitFor()
}

const messagesOf = async (page, started) => {
  await open(page, started, '#messages')
  await page.locator('#tail [name=pattern]').fill('chat.#')
  await page.locator('#tail [type=submit]').click()
  await page.locator('#history [name=key]').fill('chat.lobby.message')
  await page.locator('#history [type=submit]').click()
  await page.locator('#history td').first().waitFor()
  await page.waitForTimeout(2_000)
}

const optionsOf = async (page, started) => {
  await open(page, started, '#options')
  await page.locator('#config [name=search]').fill('max')
  await page.locator('#config output', { hasText: ' of ' }).waitFor()
}

/** @type {import('../main.mjs').Shot[]} */
export const shots = [
  {
    name: 'admin-login',
    start: startNodes,
    async show(page, { url }) {
      await page.goto(`${url}/admin`)
      await page.locator('#login').waitFor()
    },
  },
  {
    name: 'admin-overview',
    start: startNodes,
    isKept: true,
    async show(page, started) {
      await open(page, started)
      await page.waitForTimeout(FILL_MS)
    },
  },
  { name: 'admin-connections', start: startNodes, show: connectionsOf },
  { name: 'admin-messages', start: startNodes, isWhole: false, show: messagesOf },
  { name: 'admin-options', start: startNodes, show: optionsOf },
]
