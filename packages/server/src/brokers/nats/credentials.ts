import { readFile } from 'node:fs/promises'
import type { Auth, Authenticator } from '@nats-io/transport-node'
import { WebMQError } from 'webmq-client/protocol'
import type { NatsIdentity } from './address.js'
import type { NatsCore } from './library.js'

/**
 * What shows the server who a node is. Reads the identity's file, if it has one.
 * @throws {WebMQError} `E_BROKER_REFUSED` when the file cannot be read; the returned function throws it when the file cannot be used.
 */
export async function readCredentials(identity: NatsIdentity, core: NatsCore): Promise<Authenticator> {
  switch (identity.kind) {
    case 'nobody':
      return () => undefined
    case 'user':
      return () => ({ user: identity.user, pass: identity.password })
    case 'token':
      return () => ({ auth_token: identity.token })
    case 'creds':
    case 'nkey': {
      const bytes = await readIdentityFile(identity.file)
      const authenticator =
        identity.kind === 'creds' ? core.credsAuthenticator(bytes) : core.nkeyAuthenticator(trimmed(bytes))
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

/** The library's error says what is wrong with the file, and shows nothing of it. */
function sign(authenticator: Authenticator, nonce: string | undefined, file: string): Auth {
  try {
    return authenticator(nonce)
  } catch (cause) {
    throw new WebMQError('E_BROKER_REFUSED', { detail: `the credentials file ${file} cannot be used`, cause })
  }
}
