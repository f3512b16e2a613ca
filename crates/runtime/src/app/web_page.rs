//! The web server of a team, or of a hub: it starts with the team, or once somebody asks for a link. The gateway has an
//! address of its own, if the configuration says so.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};

use anyhow::Context as _;
use eisen_base::task;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, OnceCell};
use tokio_util::sync::CancellationToken;

use crate::app::figures::MetricsStarter;
use crate::app::members::Conditions;
use crate::config::{Config, Enforce, Web};
use crate::home::journals::team_folder;
use crate::model::WebScope;
use crate::program::outlet;
use crate::serve::{Gateway, OpenedOnWeb, Refused, WebLink, WebToken};
use crate::web::{CredentialError, Credentials, ENTER, Served, WebServer, WebSite};

/// A team's web server, whether it runs or not.
#[derive(Clone)]
pub(crate) struct WebPage(Arc<PageState>);

/// The way to a port, and to the metrics if there are any.
type ServedTeam = (Gateway, Option<MetricsStarter>);

/// The web page is to be served.
#[derive(Clone, Copy, Debug)]
pub struct WebWish {
    /// Where, instead of the configuration's address.
    pub at: Option<SocketAddr>,
}

/// The subject of a page.
pub(crate) struct PageOf {
    /// The team, or the name of a hub.
    team: String,
    /// Where the gateway is served alone.
    gateway: Option<Web>,
    /// Agents that could read a person's files.
    unconfined: Vec<String>,
}

impl PageOf {
    pub(crate) fn team(config: &Config, is_kernel: bool) -> Self {
        let is_open = |enforce| match enforce {
            Enforce::Protocol => true,
            Enforce::Auto | Enforce::Observe => !is_kernel,
            Enforce::Kernel => false,
        };
        let unconfined = config.agents.iter().filter(|agent| is_open(agent.zone.enforce));
        Self {
            team: config.team.name.clone(),
            gateway: config.gateway.served.clone(),
            unconfined: unconfined.map(|agent| agent.id.to_string()).collect(),
        }
    }

    pub(crate) fn hub(name: &str) -> Self {
        Self { team: name.to_owned(), gateway: None, unconfined: Vec::new() }
    }
}

struct PageState {
    of: PageOf,
    config: Web,
    /// Names the team among all of this machine.
    place: String,
    tokens: PathBuf,
    cancel: CancellationToken,
    credentials: OnceCell<Arc<Credentials>>,
    /// The team that it serves; None before and after the team.
    served: std::sync::Mutex<Option<ServedTeam>>,
    /// Where it is served, once it is.
    site: Mutex<Option<WebSite>>,
    gateway_site: OnceCell<WebSite>,
}

impl WebPage {
    /// A server of a team, which does not run yet. `holds`: the kernel holds its zones.
    pub(crate) fn of_team(
        asked: Option<WebWish>,
        config: &Config,
        conditions: &Conditions,
        cancel: &CancellationToken,
    ) -> Self {
        let (holds, eisen_dir) = (conditions.kernel.holds, &conditions.eisen_dir);
        let mut web = config.web.clone().unwrap_or_default();
        if let Some(at) = asked.and_then(|asked| asked.at) {
            (web.listen, web.any_port) = (at, false);
        }
        Self::new(PageOf::team(config, holds), web, eisen_dir, cancel.clone())
    }

    /// Nothing is read, and nothing is served yet.
    pub(crate) fn new(
        of: PageOf,
        config: Web,
        eisen_dir: &Path,
        cancel: CancellationToken,
    ) -> Self {
        Self(Arc::new(PageState {
            place: format!("{}\0{}", eisen_dir.display(), of.team),
            tokens: team_folder(eisen_dir, &of.team).join("web.json"),
            of,
            config,
            cancel,
            credentials: OnceCell::new(),
            served: std::sync::Mutex::default(),
            site: Mutex::new(None),
            gateway_site: OnceCell::new(),
        }))
    }

    /// Sets the port to which the page's lines go, and what `/metrics` shows.
    pub(crate) fn connect(&self, gateway: Gateway, measure: Option<MetricsStarter>) -> &Self {
        *self.served() = Some((gateway, measure));
        self
    }

    /// Lets go of the team, which ends: the port has this page, too.
    pub(crate) fn end(&self) {
        *self.served() = None;
    }

    /// Its origin, once it is served.
    pub(crate) fn origin(&self) -> Option<String> {
        let site = self.0.site.try_lock().ok()?;
        site.as_ref().map(|site| site.origin().to_owned())
    }

    fn served(&self) -> MutexGuard<'_, Option<ServedTeam>> {
        self.0.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves from now on, if that is wanted, and says where; a link, which is a secret, is shown on a terminal only.
    pub(crate) async fn announce(&self, is_wanted: bool) -> anyhow::Result<()> {
        if let Some(web) = &self.0.of.gateway {
            let site = self.listen(web, SiteKind::Gateway).await?;
            let said = format!("eisen-core acp: {}/acp\n", site.origin());
            let _ = outlet::stderr().clone().write_all(said.as_bytes());
            let _ = self.0.gateway_site.set(site);
        }
        if !is_wanted {
            return Ok(());
        }
        let site = self.serve().await?;
        let mut said = format!("eisen-core web page: {}\n", site.origin());
        if io::stderr().is_terminal() {
            let link = self.link_at(&site, OpenedOnWeb::Scope(WebScope::Control)).await?;
            let minutes = link.lasts.as_secs() / 60;
            let _ = writeln!(said, "  open (once, within {minutes} minutes): {}", link.url);
        } else {
            said.push_str("  `eisen-core web` prints a link that opens it\n");
        }
        let _ = outlet::stderr().clone().write_all(said.as_bytes());
        Ok(())
    }

    /// Makes a link; serves from now on.
    pub(crate) async fn link(&self, opens: OpenedOnWeb) -> Result<WebLink, Refused> {
        let site = self.serve().await.map_err(|error| Refused::new(500, format!("{error:#}")))?;
        self.link_at(&site, opens).await.map_err(|error| refused(&error))
    }

    pub(crate) async fn token(&self, scope: WebScope) -> Result<WebToken, Refused> {
        let made = self.credentials().await.and_then(|all| all.token(scope));
        let (token, id) = made.map_err(|error| refused(&error))?;
        let site = self.0.site.lock().await.clone();
        let site = site.or_else(|| self.0.gateway_site.get().cloned());
        let url = site.map(|site| site.origin().to_owned());
        Ok(WebToken { token, id, url })
    }

    pub(crate) async fn revoke(&self, id: Option<&str>) -> Result<usize, Refused> {
        let revoked = self.credentials().await.and_then(|all| all.revoke(id));
        revoked.map_err(|error| refused(&error))
    }

    async fn link_at(
        &self,
        site: &WebSite,
        opens: OpenedOnWeb,
    ) -> Result<WebLink, CredentialError> {
        let link = self.credentials().await?.link(opens)?;
        let url = format!("{}{ENTER}?link={}", site.origin(), link.code);
        Ok(WebLink { url, lasts: link.lasts })
    }

    async fn credentials(&self) -> Result<Arc<Credentials>, CredentialError> {
        let PageState { place, tokens, .. } = &*self.0;
        let opened = self
            .0
            .credentials
            .get_or_try_init(|| async { Credentials::open(place, tokens.clone()).map(Arc::new) });
        opened.await.cloned()
    }

    /// Serves from now on, if it does not yet.
    async fn serve(&self) -> anyhow::Result<WebSite> {
        let Self(state) = self;
        let mut place = state.site.lock().await;
        if let Some(site) = &*place {
            return Ok(site.clone());
        }
        let site = self.listen(&state.config, SiteKind::Page).await?;
        if !state.of.unconfined.is_empty() {
            tracing::warn!(
                agents = state.of.unconfined.join(", "),
                "the kernel does not confine these agents: they run as you, and can read the credentials of \
                 the web page from your browser's files"
            );
        }
        *place = Some(site.clone());
        Ok(site)
    }

    /// Serves at an address from now on.
    async fn listen(&self, web: &Web, kind: SiteKind) -> anyhow::Result<WebSite> {
        let Web { listen, any_port, origin, tls, trusted_proxy } = web;
        let what = kind.what();
        if let Some(why) = web.refusal(what) {
            anyhow::bail!("{what} can't be served at {listen}: {why}");
        }
        let bound = match TcpListener::bind(listen).await {
            Err(error) if *any_port && error.kind() == io::ErrorKind::AddrInUse => {
                TcpListener::bind((listen.ip(), 0)).await
            }
            bound => bound,
        };
        let listener = bound.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => anyhow::anyhow!(
                "port {} is taken, so that {what} can't be served there; {}",
                listen.port(),
                kind.way_out()
            ),
            _ => anyhow::anyhow!("cannot serve {what} at {listen}: {error}"),
        })?;
        let site = WebSite::new(origin.as_deref(), listener.local_addr()?, tls.is_some());
        let (credentials, cancel) = (self.credentials().await?, self.0.cancel.clone());
        let measured = |measure: &Option<MetricsStarter>| {
            measure.as_ref().filter(|_| kind == SiteKind::Page).map(|measure| measure())
        };
        let team =
            self.served().as_ref().map(|(gateway, measure)| (gateway.clone(), measured(measure)));
        let (gateway, metrics) = team.context("the team is ending")?;
        let all = Served { site: site.clone(), credentials, gateway, metrics, cancel };
        let mut server = match kind {
            SiteKind::Page => WebServer::new(listener, all),
            SiteKind::Gateway => WebServer::of_gateway(listener, all),
        };
        if let Some(files) = tls {
            server = server.with_tls(&files.cert, &files.key)?;
        }
        task::spawn(server.behind(*trusted_proxy).run());
        Ok(site)
    }
}

/// The kind of site at an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SiteKind {
    Page,
    Gateway,
}

impl SiteKind {
    fn what(self) -> &'static str {
        match self {
            Self::Page => "the web page",
            Self::Gateway => "the gateway",
        }
    }

    /// The remedy if the port is taken.
    fn way_out(self) -> &'static str {
        match self {
            Self::Page => {
                "`--web=127.0.0.1:0` takes a free one, and `[web] listen` another one for good"
            }
            Self::Gateway => "`[gateway] listen` takes another one",
        }
    }
}

fn refused(error: &CredentialError) -> Refused {
    let code = match error {
        CredentialError::Full => 409,
        CredentialError::Unknown(_) => 404,
        CredentialError::Random(_) | CredentialError::File { .. } => 500,
    };
    Refused::new(code, error.to_string())
}
