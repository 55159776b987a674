import { mkdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { tryLock } from './file-lock.js'
import { ServiceError } from './service-error.js'

/**
 * Below the ephemeral range (32768-60999), where an outgoing connection could take the port while its service restarts.
 */
const MIN_PORT = 20_000
const PORT_COUNT = 12_000
const MAX_ATTEMPTS = 50
/** One lock per assigned port, because a RabbitMQ binds its ports seconds after the check. */
const LOCKS = path.join(tmpdir(), `webmq-ports-${process.getuid?.() ?? ''}`)

let locks: string[] | undefined

/**
 * A free port on loopback, outside the ephemeral range. No other caller of this user gets it until this process ends.
 * Other programs may still bind it first.
 * @throws {ServiceError} when there is none.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const port = MIN_PORT + Math.floor(Math.random() * PORT_COUNT)
    if ((await reserve(port)) && (await isFree(port))) return port
  }
  throw new ServiceError(`no free port was found between ${MIN_PORT} and ${MIN_PORT + PORT_COUNT}`)
}

async function reserve(port: number): Promise<boolean> {
  if (locks === undefined) {
    const held: string[] = []
    locks = held
    mkdirSync(LOCKS, { recursive: true })
    process.once('exit', () => {
      for (const file of held) rmSync(file, { force: true })
    })
  }
  const file = path.join(LOCKS, String(port))
  if (!(await tryLock(file))) return false
  locks.push(file)
  return true
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
