import { readFile } from 'node:fs/promises'
import type { Auth, Authenticator } from '@nats-io/transport-node'
import { WebMQError } from 'webmq-client/protocol'
import type { NatsIdentity } from './address.js'
import type { NatsCore } from './library.js'

/**
 * Makes the library's authenticator for an identity. Reads the identity's file, if there is one.
 * @throws {WebMQError} `E_BROKER_REFUSED` if the file cannot be read. The authenticator throws it if the file is not
 *   valid.
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

/** The library's error explains what is wrong with the file and reveals none of its content. */
function sign(authenticator: Authenticator, nonce: string | undefined, file: string): Auth {
  try {
    return authenticator(nonce)
  } catch (cause) {
    throw new WebMQError('E_BROKER_REFUSED', { detail: `the credentials file ${file} cannot be used`, cause })
  }
}
