// The budget of the client in an app: everything but `webmq-client/testing` and the server's half of the protocol.
// Explanations of errors load when they are needed; packages/client/test/bundle.test.ts holds that they import nothing.

import { fileURLToPath } from 'node:url'

/** The plugin takes this off for what esbuild adds to an empty script, which it does not add to a module. */
const EMPTY_SCRIPT_BYTES = 32

const LATER = ['connection/token-defect', 'connection/refusal']

const check = (file, maxBytes, ignore = []) => ({
  name: `webmq-client/dist/${file}.js`,
  path: `packages/client/dist/${file}.js`,
  limit: `${maxBytes - EMPTY_SCRIPT_BYTES} B`,
  gzip: true,
  ignore,
  modifyEsbuildConfig: (config) => ({ ...config, format: 'esm', platform: 'neutral', target: 'es2022' }),
})

export default [
  check(
    'index',
    13_824,
    [...LATER, 'sse/fallback'].map((file) =>
      fileURLToPath(new URL(`packages/client/dist/${file}.js`, import.meta.url)),
    ),
  ),
  ...LATER.map((file) => check(file, 1_024)),
  // Loads where WebSockets fail, with the half of the protocol that the server has.
  check('sse/fallback', 8_704),
]
