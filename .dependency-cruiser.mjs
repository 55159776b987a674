// The dependency rule of ARCHITECTURE.md, checked by `npm run lint`.
const TESTS = '\\.test(-d)?\\.ts$|/test/|/conformance/|/fuzz/'

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    {
      name: 'no-cycles',
      comment: 'A cycle means that two rooms are one.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'protocol-stands-alone',
      comment: 'client/protocol imports nothing but itself.',
      severity: 'error',
      from: { path: '^packages/client/src/protocol/', pathNot: TESTS },
      to: { pathNot: '^packages/client/src/protocol/' },
    },
    {
      name: 'client-has-no-dependencies',
      comment: 'The client runs in browsers and has zero dependencies.',
      severity: 'error',
      from: { path: '^packages/client/src/', pathNot: `^packages/client/src/msgpack/|${TESTS}` },
      to: { pathNot: '^packages/client/src/' },
    },
    {
      name: 'a-codec-has-its-library-and-no-more',
      comment: 'msgpackr is an optional peer, imported by webmq-client/msgpack alone.',
      severity: 'error',
      from: { path: '^packages/client/src/msgpack/', pathNot: TESTS },
      to: { pathNot: '^packages/client/src/|/node_modules/msgpackr/' },
    },
    {
      name: 'nobody-imports-a-codec',
      comment: 'Whoever does not want a codec must not get its library.',
      severity: 'error',
      from: { path: '^packages/client/src/', pathNot: `^packages/client/src/msgpack/|${TESTS}` },
      to: { path: '^packages/client/src/msgpack/' },
    },
    {
      name: 'server-uses-only-the-protocol-of-the-client',
      severity: 'error',
      from: { path: '^packages/server/src/', pathNot: TESTS },
      to: { path: '^packages/(client|bench)/', pathNot: '^packages/client/(src|dist)/protocol/' },
    },
    {
      name: 'only-the-composition-root-knows-adapters',
      comment: 'create-server.ts alone imports concrete brokers and transports; index.ts exports them.',
      severity: 'error',
      from: {
        path: '^packages/server/src/',
        pathNot: `^packages/server/src/(brokers|transports)/|^packages/server/src/(create-server|index)\\.ts$|${TESTS}`,
      },
      to: { path: '^packages/server/src/(brokers|transports)/' },
    },
    {
      name: 'adapters-know-only-their-port',
      comment:
        'A broker or a transport imports its port, the errors, its own files and its own library; brokers also share addresses, positions, the rules of history and the router.',
      severity: 'error',
      from: { path: '^packages/server/src/(brokers|transports)/', pathNot: TESTS },
      to: {
        path: '^packages/server/src/',
        pathNot:
          '^packages/server/src/(broker|broker-address|history-rules|transport|position|router)\\.ts$|^packages/server/src/$1/',
      },
    },
    {
      name: 'services-stand-alone',
      comment:
        'They start real brokers for tests and benches: Node, the errors, testcontainers when it is there, and no more.',
      severity: 'error',
      from: { path: '^packages/server/src/services/', pathNot: TESTS },
      to: {
        dependencyTypesNot: ['core'],
        pathNot: '^packages/server/src/services/|^packages/client/(src|dist)/protocol/|/node_modules/testcontainers/',
      },
    },
    {
      name: 'no-product-code-uses-services',
      severity: 'error',
      from: { path: '^packages/(client|server)/src/', pathNot: `^packages/server/src/services/|${TESTS}` },
      to: { path: '^packages/server/src/services/' },
    },
    {
      name: 'native-is-the-bottom',
      severity: 'error',
      from: { path: '^packages/native/' },
      to: { path: '^packages/(client|server|bench)/' },
    },
    {
      name: 'resolvable',
      severity: 'error',
      from: { pathNot: TESTS },
      to: { couldNotResolve: true, pathNot: '^uWebSockets\\.js$' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules|^packages/[^/]+/dist/' },
    exclude: { path: '(^|/)target/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.base.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'default'],
      extensions: ['.ts', '.js', '.mjs'],
    },
  },
}
