import { loadLibrary } from '../remote/library.js'

type CoreModule = typeof import('@nats-io/transport-node')
type JetStreamModule = typeof import('@nats-io/jetstream')

/** The NATS client, as far as every link uses it. */
export type NatsCore = Pick<CoreModule, 'connect' | 'headers' | 'credsAuthenticator' | 'nkeyAuthenticator'>

/** The JetStream client, as far as the log uses it. */
export type NatsJetStream = Pick<
  JetStreamModule,
  | 'jetstream'
  | 'jetstreamManager'
  | 'AckPolicy'
  | 'DeliverPolicy'
  | 'DiscardPolicy'
  | 'ReplayPolicy'
  | 'RetentionPolicy'
  | 'StorageType'
  | 'JetStreamApiError'
  | 'PubHeaders'
>

/** Loads the modules of the NATS client; replaceable for tests. */
export interface NatsImports {
  readonly core: () => Promise<NatsCore>
  readonly jetStream: () => Promise<NatsJetStream>
}

const IMPORTS: NatsImports = {
  core: () => import('@nats-io/transport-node'),
  jetStream: () => import('@nats-io/jetstream'),
}

/**
 * Loads the NATS client, an optional peer.
 * @throws {WebMQError} `E_BROKER_MISSING`, with the command that installs it.
 */
export async function loadNats({ core }: NatsImports = IMPORTS): Promise<NatsCore> {
  return await loadLibrary('@nats-io/transport-node', 'the broker nats://…', core)
}

/**
 * Loads the JetStream client, an optional peer that only history needs.
 * @throws {WebMQError} `E_BROKER_MISSING`, with the command that installs it.
 */
export async function loadJetStream({ jetStream }: NatsImports = IMPORTS): Promise<NatsJetStream> {
  return await loadLibrary('@nats-io/jetstream', 'history with the broker nats://…', jetStream)
}
