import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import path from 'node:path'
import type { NatsOptions, Service } from 'webmq-services'
import { serveWire } from '../serve.js'
import { natsSettingsOf } from './config.js'
import type { JetStreamSnapshot } from './jetstream.js'
import { NatsModel } from './model.js'

const STORE_FILE = 'model.json'

/** A model of NATS at a TCP port, for tests that are given a service. Its data is in a file of its store while it is down. */
export async function startModelNats({ config = '', hasJetStream, args = [] }: NatsOptions = {}): Promise<Service> {
  const { options, storeFolder } = natsSettingsOf(config)
  const model = new NatsModel({ ...options, ...(hasJetStream === true ? { hasJetStream } : {}) })
  const served = await serveWire(model)
  const monitor = args[0] === '--http_port' ? await serveMonitor(model, Number(args[1])) : undefined
  const url = `nats://127.0.0.1:${served.port}`
  const unknown = () => Promise.reject(new Error('the model of NATS does not do that'))
  let stopped: Promise<void> | undefined
  const kill = async () => {
    model.kill(0)
    if (storeFolder === undefined) return
    await mkdir(storeFolder, { recursive: true })
    await writeFile(path.join(storeFolder, STORE_FILE), JSON.stringify(model.snapshot()))
  }
  const service: Service = {
    kind: 'nats',
    url,
    source: 'binary',
    cpuSeconds: () => undefined,
    peakRssBytes: () => undefined,
    kill,
    freeze: unknown,
    thaw: unknown,
    restart: async () => {
      if (storeFolder !== undefined) {
        const file = path.join(storeFolder, STORE_FILE)
        model.restore(existsSync(file) ? (JSON.parse(await readFile(file, 'utf8')) as JetStreamSnapshot) : [])
      }
      model.start()
    },
    stop: async () => {
      stopped ??= served.close()
      await stopped
      monitor?.close()
    },
    [Symbol.asyncDispose]: () => service.stop(),
  }
  return service
}

/** What `/connz` says of names and subscriptions. */
async function serveMonitor(model: NatsModel, port: number): Promise<Server> {
  const server = createServer((_, response) => {
    const connections = [...model.connections].map(({ name, subjects }) => ({ name, subscriptions_list: subjects }))
    response.end(JSON.stringify({ connections }))
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return server
}
