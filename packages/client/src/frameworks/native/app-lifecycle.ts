import { checks } from '../../core/checks.js'
import type { Lifecycle } from '../../core/client-options.js'

/** The part of `AppState` of `react-native` that is used. */
export interface AppStateModule {
  readonly currentState?: string | null | undefined
  addEventListener(type: 'change', listener: () => void): { remove(): void }
}

/** What `@react-native-community/netinfo` says of the network. */
export interface NetworkState {
  readonly type?: string | undefined
  readonly isConnected?: boolean | null | undefined
  readonly details?: unknown
}

/** The part of `@react-native-community/netinfo` that is used. */
export interface NetInfoModule {
  /** Tells the present state soon, then each change. Returns a function that ends it. */
  addEventListener(listener: (state: NetworkState) => void): () => void
}

/** Modules of the app: the client imports neither. */
export interface AppModules {
  /** Without it the client makes attempts in the background too, as an app that plays audio there wants. */
  readonly AppState?: AppStateModule | undefined
  /** Without it the client learns of another network by its heartbeat. */
  readonly NetInfo?: NetInfoModule | undefined
}

/**
 * The client's option `lifecycle` for React Native and Expo. In the background the client makes no attempts; it keeps the
 * connection that it has until the system or the server ends that. In the foreground, and on another network, it checks a
 * live connection within 2 seconds and makes an attempt within `reconnect.minMs`.
 *
 * It observes the modules while a client is open; clients may share it.
 */
export function appLifecycle(modules: AppModules): Lifecycle {
  checks.part?.('appLifecycle', modules)
  const { AppState, NetInfo } = modules
  const isHidden = () => AppState?.currentState === 'background'
  const app = new AppEvents((emit) => {
    let network: string | undefined
    const appState = AppState?.addEventListener('change', () => emit('visibilitychange'))
    const endNetInfo = NetInfo?.addEventListener((state) => {
      const previous = network
      network = networkOf(state)
      // The first call is about the network at the start.
      if (previous !== undefined && previous !== network) emit(state.isConnected === false ? 'offline' : 'online')
    })
    return () => {
      appState?.remove()
      endNetInfo?.()
    }
  })
  const addEventListener = app.addEventListener.bind(app)
  return {
    addEventListener,
    document: {
      addEventListener,
      get visibilityState() {
        return isHidden() ? 'hidden' : 'visible'
      },
    },
    navigator: {
      // A hidden page that is offline makes no attempts; an app in the background never does.
      get onLine() {
        return !isHidden()
      },
    },
  }
}

/** Differs when sockets of one state may be dead in the other. A change of the signal's strength is none. */
function networkOf({ type, isConnected, details }: NetworkState): string {
  const { ipAddress } = { ...Object(details) } as { readonly ipAddress?: unknown }
  return `${type} ${isConnected} ${ipAddress}`
}

type Listener = (event: Event) => unknown

/** Events for listeners that end by a signal. It observes the app while there is one. */
class AppEvents {
  readonly #observe: (emit: (type: string) => void) => () => void
  readonly #listeners = new Map<Listener, string>()
  #unobserve: (() => void) | undefined

  constructor(observe: (emit: (type: string) => void) => () => void) {
    this.#observe = observe
  }

  addEventListener(type: string, listener: Listener, { signal }: { readonly signal: AbortSignal }): void {
    // One function may listen to several events.
    const call: Listener = (event) => listener(event)
    this.#listeners.set(call, type)
    this.#unobserve ??= this.#observe((event) => this.#emit(event))
    signal.addEventListener('abort', () => this.#remove(call))
  }

  #remove(call: Listener): void {
    this.#listeners.delete(call)
    if (this.#listeners.size > 0) return
    this.#unobserve?.()
    this.#unobserve = undefined
  }

  #emit(event: string): void {
    for (const [call, type] of [...this.#listeners]) if (type === event) call({ type } as Event)
  }
}
