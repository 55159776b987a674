import { parentPort, workerData } from 'node:worker_threads'
import { ClientLoad } from './client-load.js'
import type { LoadCommand, LoadEvent, LoadWorkerData } from './messages.js'

const port = parentPort
if (port === null) throw new Error('load-worker runs as a worker thread only')

const load = new ClientLoad(workerData as LoadWorkerData)
const post = (event: LoadEvent) => port.postMessage(event)

port.on('message', (command: LoadCommand) => {
  if (command.type === 'begin') load.begin(command.window)
  else void finish()
})

await load.connect()
post({ type: 'ready' })

async function finish(): Promise<void> {
  post({ type: 'result', result: load.result() })
  await load.close()
  port?.close()
}
