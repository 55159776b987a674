// Starts a server, connects clients, lets both work, and gives back what the server has used.
import { spawn } from 'node:child_process'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const SERVER = fileURLToPath(new URL('server.mjs', import.meta.url))
const CONNECTING = 100
const SETTLE_MS = 1_000

/**
 * @param {object} plan
 * @param {object} plan.options Options of the server.
 * @param {{ perSecond: number, seconds: number, payloadBytes: number }} plan.publishing What the server publishes.
 * @param {readonly ((port: number) => Promise<import('node:net').Socket>)[]} plan.clients
 * @param {(sockets: readonly import('node:net').Socket[]) => () => void} [plan.work] What the clients do meanwhile.
 */
export async function measure({ options, publishing, clients, work = () => () => undefined }) {
  const child = spawn(process.execPath, [SERVER, JSON.stringify({ options, publishing })], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const port = Number((await lines.next()).value)
  const sockets = []
  for (let next = 0; next < clients.length; next += CONNECTING) {
    sockets.push(...(await Promise.all(clients.slice(next, next + CONNECTING).map((open) => open(port)))))
  }
  await new Promise((resolve) => {
    setTimeout(resolve, SETTLE_MS)
  })
  for (const socket of sockets) socket.on('error', () => socket.destroy())
  const end = work(sockets)
  child.stdin.write('go\n')
  const result = JSON.parse((await lines.next()).value)
  end()
  for (const socket of sockets) socket.destroy()
  return result
}
