import { parentPort, workerData } from 'node:worker_threads'
import { ClientLoad } from './client-load.js'
import type { LoadCommand, LoadEvent, LoadWorkerData } from './messages.js'

const port = parentPort
if (port === null) throw new Error('load-worker runs as a worker thread only')

const data = workerData as LoadWorkerData
const load = new ClientLoad(data)
const post = (event: LoadEvent) => port.postMessage(event)

port.on('message', (command: LoadCommand) => {
  if (command.type === 'begin') load.begin(command.window)
  else void finish()
})
data.wakeUps.port.on('message', () => {
  Atomics.store(new Int32Array(data.wakeUps.pending), 0, 0)
  load.sendDue()
})

await load.connect()
post({ type: 'ready' })

async function finish(): Promise<void> {
  post({ type: 'result', result: load.result() })
  await load.close()
  data.wakeUps.port.close()
  port?.close()
}
