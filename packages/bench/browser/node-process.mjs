// A client of a measurement in a process of its own, over the package `ws`. Answers each message of its parent with what
// it has handled, and the CPU time it has spent.
// Started by node.mjs with: client name, URL.
import process from 'node:process'
import { WebSocket } from 'ws'

// Before the clients load: one of them looks for it as it loads. Socket.IO's takes `ws` by itself.
globalThis.WebSocket = WebSocket
const { CLIENTS } = await import('./clients.mjs')

const [name, url] = process.argv.slice(2)
let handledCount = 0
let lastSeq = 0

function show(_key, { seq }) {
  handledCount++
  lastSeq = seq
}

const report = () => {
  const { userCPUTime, systemCPUTime, voluntaryContextSwitches } = process.resourceUsage()
  process.send({ handledCount, lastSeq, cpuUs: userCPUTime + systemCPUTime, waits: voluntaryContextSwitches })
}
process.on('message', report)
process.once('disconnect', () => process.exit(0))
await CLIENTS[name](url, show)
report()
