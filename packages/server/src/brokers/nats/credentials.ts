import { readFile } from 'node:fs/promises'
import type { Authenticator } from '@nats-io/transport-node'
import { WebMQError } from 'webmq-client/protocol'
import type { NatsIdentity } from './address.js'

/** The part of the library that is used: signing with a key of NATS's own kind. */
export type NatsModule = Pick<typeof import('@nats-io/transport-node'), 'credsAuthenticator' | 'nkeyAuthenticator'>

/** What a server is shown: fields of `CONNECT`. */
export type NatsCredentials = (nonce: string | undefined) => object

/**
 * Loads the library when the identity needs it: for a user, a token or nobody it does not.
 * @param importModule Replaceable for tests.
 * @throws {WebMQError} `E_BROKER_MISSING`, with the command that installs it.
 */
export async function loadNats(
  identity: NatsIdentity,
  importModule: () => Promise<NatsModule> = () => import('@nats-io/transport-node'),
): Promise<NatsModule | undefined> {
  if (identity.kind !== 'creds' && identity.kind !== 'nkey') return undefined
  try {
    return await importModule()
  } catch (cause) {
    throw new WebMQError('E_BROKER_MISSING', {
      detail:
        'credentials files and nkeys of NATS need @nats-io/transport-node; install it with `npm install @nats-io/transport-node`',
      cause,
    })
  }
}

/**
 * Reads the identity's file, if it has one.
 * @throws {WebMQError} `E_BROKER_REFUSED` when it cannot be read.
 */
export async function readCredentials(
  identity: NatsIdentity,
  module: NatsModule | undefined,
): Promise<NatsCredentials> {
  switch (identity.kind) {
    case 'nobody':
      return () => ({})
    case 'user':
      return () => ({ user: identity.user, pass: identity.password })
    case 'token':
      return () => ({ auth_token: identity.token })
    case 'creds':
    case 'nkey': {
      const bytes = await readIdentityFile(identity.file)
      const authenticator =
        identity.kind === 'creds' ? module?.credsAuthenticator(bytes) : module?.nkeyAuthenticator(trimmed(bytes))
      return (nonce) => sign(authenticator, nonce, identity.file)
    }
  }
}

async function readIdentityFile(file: string): Promise<Uint8Array> {
  try {
    return await readFile(file)
  } catch (cause) {
    throw new WebMQError('E_BROKER_REFUSED', { detail: `the credentials file ${file} cannot be read`, cause })
  }
}

function trimmed(bytes: Uint8Array): Uint8Array {
  return Buffer.from(Buffer.from(bytes).toString().trim())
}

/** The error of the library says what is wrong with the file, and shows nothing of it. */
function sign(authenticator: Authenticator | undefined, nonce: string | undefined, file: string): object {
  try {
    return authenticator?.(nonce) ?? {}
  } catch (cause) {
    throw new WebMQError('E_BROKER_REFUSED', { detail: `the credentials file ${file} cannot be used`, cause })
  }
}
