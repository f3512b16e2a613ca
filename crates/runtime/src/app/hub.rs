//! A team as a member of a hub, and `hub`: a process without agents whose port shows the teams of all hosts.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use eisen_base::task::TaskSet;
use tokio_util::sync::CancellationToken;

use crate::app::WebWish;
use crate::app::rooms::{Wiring, backlog};
use crate::app::web_page::{PageOf, WebPage};
use crate::bus::Bus;
use crate::config::{self, Config, SharedConfig};
use crate::home::environment;
use crate::home::journals::team_folder;
use crate::hub::{self, Hub, HubKey, HubSettings, MemberSettings, Neighbours};
use crate::model::{AgentId, AgentStatus, NatsAccess, SecretText, WebScope};
use crate::program::{Failure, StopSignals, announce_port, bind, config_errors, limits};
use crate::serve::{
    self, AgentDetails, BoxFuture, Gateway, OpenedOnWeb, Refused, RunFile, Server, Sources, Team,
    Tokens, WebLink, WebToken,
};
use crate::team_file::shared_config;
use crate::tokens::ScopedTokens;

/// The name of a hub among the teams of a user.
const NAME: &str = "hub";

/// How long clients may take to receive their last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The options with which a hub is started.
#[derive(Clone, Debug)]
pub struct HubOptions {
    /// Where it listens; None: on this machine only.
    pub listen: Option<SocketAddr>,
    pub port: Option<u16>,
    /// The server of NATS; None: that of the configuration.
    pub nats: Option<String>,
    /// None: the web page is served once somebody asks for a link.
    pub web: Option<WebWish>,
    /// A configuration over the user's.
    pub file: Option<PathBuf>,
}

/// Makes a team a member of a hub, if its configuration says so.
pub(super) fn join(config: &Config, eisen_dir: &Path, gateway: Gateway, wiring: &mut Wiring) {
    let Some(member) = &config.shared.hub else { return };
    let Some(host) = member.host.clone() else { return };
    let key = match HubKey::of_user(eisen_dir) {
        Ok(key) => key,
        Err(error) => {
            tracing::error!(host, "the team can't join a hub: {error}");
            return;
        }
    };
    let (team, access) = (config.team.name.clone(), member.access.clone());
    let neighbours = wiring.neighbours.clone().unwrap_or_default();
    let settings = MemberSettings { host, team, access, key, neighbours };
    wiring.tasks.spawn(hub::serve(settings, gateway, wiring.cancel.clone()));
}

/// The other teams of the hub that a team is a member of.
pub(super) fn neighbours(config: &Config) -> Option<Neighbours> {
    config.shared.hub.as_ref()?.host.as_ref().map(|_| Neighbours::default())
}

/// Serves a hub until a signal stops it.
pub async fn hub(options: HubOptions) -> Result<(), Failure> {
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    environment::prepare(&eisen_dir).map_err(Failure::Usage)?;
    let access = access(&options, &eisen_dir)?;
    run(options, access, &eisen_dir).await.map_err(Failure::Run)
}

fn access(options: &HubOptions, eisen_dir: &Path) -> Result<NatsAccess, Failure> {
    let shared = match &options.file {
        Some(file) => SharedConfig::read(eisen_dir, Some(file)).map_err(config_errors)?,
        None => shared_config(Path::new("."))?,
    };
    let configured = shared.hub.map(|hub| hub.access);
    match (&options.nats, configured) {
        (Some(nats), configured) => {
            let url = SecretText::new(nats.clone());
            let none = NatsAccess { url: url.clone(), token: None, credentials: None };
            Ok(NatsAccess { url, ..configured.unwrap_or(none) })
        }
        (None, Some(configured)) => Ok(configured),
        (None, None) => {
            let file = eisen_dir.join("config.toml");
            Err(Failure::Usage(anyhow!(
                "it is not known where NATS is: give --nats nats://HOST:4222, or write `nats` in `[hub]` of {}",
                file.display()
            )))
        }
    }
}

async fn run(options: HubOptions, access: NatsAccess, eisen_dir: &Path) -> anyhow::Result<()> {
    let mut stop = StopSignals::listen()?;
    let port_limits = config::Port::default();
    let listener = match options.listen {
        Some(mut listen) => {
            listen.set_port(options.port.unwrap_or(listen.port()));
            serve::bind(listen, eisen_dir).await?
        }
        None => bind(options.port, eisen_dir).await?,
    };
    let address = listener.local_addr()?;
    let tokens = Tokens::generate(None)?;
    let run_file = RunFile::create(eisen_dir, NAME, address, tokens.owner())?;
    let scoped = ScopedTokens::open(&team_folder(eisen_dir, NAME));
    let scoped =
        scoped.inspect_err(|error| tracing::warn!(%error, "no token with a scope is good"));

    let bus = Bus::encoding(backlog(port_limits), serve::encode);
    let (cancel, mut tasks) = (CancellationToken::new(), TaskSet::default());
    let settings = HubSettings {
        access,
        key: HubKey::of_user(eisen_dir)?,
        bus: bus.clone(),
        tokens: scoped.ok(),
    };
    let (hub, listening) =
        Hub::start(settings, cancel.clone()).await.context("cannot connect to NATS")?;
    let is_web = options.web.is_some();
    let mut web = config::Web::default();
    web.listen = options.web.and_then(|asked| asked.at).unwrap_or(web.listen);
    let page = WebPage::new(PageOf::hub(NAME), web, eisen_dir, cancel.clone());
    let sources: Arc<dyn Sources> = Arc::new(hub.clone());
    let team: Arc<dyn Team> = Arc::new(HubWithPage { hub, page: page.clone() });
    let server = Server::new(listener, bus, sources, team, tokens, limits(port_limits))?;
    page.connect(server.gateway(), None).announce(is_web).await?;
    tasks.spawn(listening);
    tasks.spawn(server.run(cancel.clone()));
    announce_port(address.port());
    let _ = stop.next().await;
    page.end();
    cancel.cancel();
    let _ = tokio::time::timeout(FLUSH_TIMEOUT, tasks.join_all()).await;
    drop(run_file);
    Ok(())
}

/// A hub, and its web page.
struct HubWithPage {
    hub: Hub,
    page: WebPage,
}

impl Team for HubWithPage {
    fn agents(&self) -> Vec<AgentStatus> {
        self.hub.agents()
    }

    fn details(&self) -> BoxFuture<'_, Vec<AgentDetails>> {
        self.hub.details()
    }

    fn keeps(&self, agent: &AgentId) -> bool {
        self.hub.keeps(agent)
    }

    fn refusal(&self) -> Refused {
        self.hub.refusal()
    }

    fn web_link(&self, opens: OpenedOnWeb) -> BoxFuture<'_, Result<WebLink, Refused>> {
        Box::pin(self.page.link(opens))
    }

    fn web_token(&self, scope: WebScope) -> BoxFuture<'_, Result<WebToken, Refused>> {
        Box::pin(self.page.token(scope))
    }

    fn web_revoke(&self, id: Option<String>) -> BoxFuture<'_, Result<usize, Refused>> {
        Box::pin(async move { self.page.revoke(id.as_deref()).await })
    }
}
