export { claimDefect } from './claim-text.js'
export { type AccessExplanation, explainAccess, mayEnter, mayListen, mayPublish, parseGrants } from './grants.js'
export { ACTIONS, type Action, ANONYMOUS, type Grant, type Identity } from './identity.js'
export { allowedAlgorithms } from './keys.js'
export { PacedVerifier } from './paced-verifier.js'
export {
  createTokenVerifier,
  type JwtOptions,
  type TokenVerifier,
  type TokenVerifierOptions,
} from './token-verifier.js'
