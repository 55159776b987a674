import { loadLibrary } from '../../base/load-library.js'

export type NatsCore = typeof import('@nats-io/transport-node')
export type NatsJetStream = typeof import('@nats-io/jetstream')

/**
 * Loads the NATS client, an optional peer.
 * @param load Replaceable for tests.
 * @throws {WebMQError} `E_BROKER_MISSING`, with the command that installs it.
 */
export function loadNats(load: () => Promise<NatsCore> = () => import('@nats-io/transport-node')): Promise<NatsCore> {
  return loadLibrary('@nats-io/transport-node', 'the broker nats://…', load)
}

/** The same for the JetStream client, which only history needs. */
export function loadJetStream(
  load: () => Promise<NatsJetStream> = () => import('@nats-io/jetstream'),
): Promise<NatsJetStream> {
  return loadLibrary('@nats-io/jetstream', 'history with the broker nats://…', load)
}
