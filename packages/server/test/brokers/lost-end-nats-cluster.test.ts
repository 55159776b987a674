import { freePort, startNats } from 'webmq-services'
import { createNatsBroker } from '../../src/brokers/nats/broker.js'
import { hostsOf, type Keeping, lostEndSuite, together } from './lost-end.js'

async function natsCluster(): Promise<Keeping> {
  const ports = await Promise.all([freePort(), freePort(), freePort()])
  const routes = ports.map((port) => `nats-route://127.0.0.1:${port}`).join()
  const configOf = (port: number) =>
    `server_name: s${port}\ncluster { name: c, listen: "127.0.0.1:${port}", routes: [${routes}] }`
  const servers = await Promise.all(ports.map((port) => startNats({ hasJetStream: true, config: configOf(port) })))
  return together(`nats://${hostsOf(servers.map(({ url }) => url))}?replicas=3`, servers)
}

lostEndSuite({ name: 'nats cluster', start: natsCluster, create: createNatsBroker })
