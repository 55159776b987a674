// Starts servers one after the other, stops each at another moment of its start, and tells what is left of it.
import { createHook } from 'node:async_hooks'
import { readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createServer } from '../../dist/index.js'

const [{ options, stride, offset }] = process.argv.slice(2).map((text) => JSON.parse(text))
/** Sockets, ports and timers, also those that keep no process alive. */
const KINDS = new Set(['TCPWRAP', 'TCPSERVERWRAP', 'PIPEWRAP', 'PIPESERVERWRAP', 'TLSWRAP', 'Timeout'])
/** What ends by itself has ended by then: a socket that is closed in order, a wait of a second. */
const LEFT_AFTER_MS = 3_000
/** What a start still does after the stop, it does by then. */
const COMES_WITHIN_MS = 50

const alive = new Map()
let isWatched = false
let moment = 0
let stopAt = Number.POSITIVE_INFINITY
let onMoment = () => undefined
createHook({
  init(id, type) {
    if (isWatched && KINDS.has(type)) alive.set(id, `${type}: ${new Error().stack?.split('\n').slice(3).join(' <- ')}`)
  },
  before() {
    if (isWatched && moment++ === stopAt) onMoment()
  },
  destroy(id) {
    alive.delete(id)
  },
}).enable()

/** @param at Callbacks and continuations from the start on, which all awaits of the start are among. */
async function play(at) {
  alive.clear()
  moment = 0
  stopAt = at
  const server = createServer({ ...options, logLevel: 'silent', host: '127.0.0.1', port: 0 })
  isWatched = true
  let stopping
  onMoment = () => queueMicrotask(() => (stopping ??= server.stop()))
  const how = await server.start().then(
    () => 'started',
    (error) => error.code ?? String(error),
  )
  const hasEnded = stopping === undefined
  await (stopping ?? server.stop())
  onMoment = () => undefined
  const stoppedMs = performance.now()
  do {
    isWatched = false
    const waited = sleep(10)
    isWatched = true
    await waited
  } while (performance.now() - stoppedMs < (alive.size > 0 ? LEFT_AFTER_MS : COMES_WITHIN_MS))
  isWatched = false
  return { at, how, moments: moment, hasEnded, left: [...alive.values()] }
}

// What a process loads once, and the threads that it keeps.
await play(Number.POSITIVE_INFINITY)
const { moments } = await play(Number.POSITIVE_INFINITY)
const threads = () => (process.platform === 'linux' ? readdirSync('/proc/self/task').length : 0)
const before = threads()
const results = []
for (let at = offset; ; at += stride) {
  const result = await play(at)
  results.push(result)
  if (result.hasEnded) break
}
process.send({ moments, results, threads: threads() - before })
process.disconnect()
