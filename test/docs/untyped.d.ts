// Packages in the docs without types of their own, or that are not installed here.

declare module 'express' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

  interface Request extends IncomingMessage {
    readonly params: Readonly<Record<string, string>>
    readonly body: Readonly<Record<string, unknown>>
  }
  interface Response extends ServerResponse {
    type(name: string): this
    status(code: number): this
    send(text: string): this
    json(value: unknown): this
  }
  type Handler = (request: Request, response: Response) => unknown
  type Route = (paths: string | readonly string[], handler: Handler) => void
  interface Express extends RequestListener {
    use(middleware: RequestListener): void
    get: Route
    post: Route
    listen(port: string | number): void
  }
  const express: { (): Express; json(): RequestListener }
  // biome-ignore lint/style/noDefaultExport: express has one
  export default express
}

declare module '@vitejs/plugin-react' {
  import type { Plugin } from 'vite'

  // biome-ignore lint/style/noDefaultExport: the plugin has one
  export default function react(): Plugin
}

declare module 'cbor-x' {
  export function encode(value: unknown): Uint8Array
  export function decode(bytes: Uint8Array): unknown
}

declare module 'react-native' {
  const AppState: {
    readonly currentState: string
    addEventListener(type: 'change', listener: (state: string) => void): { remove(): void }
  }

  export { AppState }
}

declare module '@react-native-community/netinfo' {
  const NetInfo: {
    addEventListener(
      listener: (state: { isConnected: boolean | null; type: string; details: object }) => void,
    ): () => void
  }
  // biome-ignore lint/style/noDefaultExport: the package has one
  export default NetInfo
}

declare module 'expo-network' {
  export function addNetworkStateListener(listener: (state: { isConnected?: boolean; type?: string }) => void): {
    remove(): void
  }
}
